# Serve the models of a folder over HTTP, see docs/serving.md:
#
#     docker build -f demo/serve.Dockerfile -t xclass-serve .
#     docker run --read-only --cap-drop ALL -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" xclass-serve
#
# Kernels are compiled while the image is built, for the kind of processor that builds it. On another kind, or for
# options that serve_warm.py does not use, each start compiles what is missing, in memory.

FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /src/
COPY docs/xclass.1 /src/docs/
COPY xclass /src/xclass
RUN pip install --no-cache-dir '/src[serve]'
ENV XDG_CACHE_HOME=/opt/cache
COPY demo/serve_warm.py /src/
RUN python /src/serve_warm.py && useradd --system --uid 999 --no-create-home xclass
USER 999
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["xclass", "serve"]
CMD ["--models", "/models", "--http", "0.0.0.0:8000"]
