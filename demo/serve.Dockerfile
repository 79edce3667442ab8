# Serve the models of a folder over HTTP, see docs/serving.md:
#
#     docker build -f demo/serve.Dockerfile -t xclass-serve .
#     docker run --read-only --cap-drop ALL -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" xclass-serve
#
# Kernels are compiled while the image is built, for the kind of processor that builds it; on another kind, the first
# start compiles them for its own, in memory.

FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir '/src[serve]' && rm -rf /src
ENV XDG_CACHE_HOME=/opt/cache
RUN printf 'tea | kettle leaf\ncoffee | bean\n' | xclass -f /tmp/warm.bin --quiet \
    && python -c "import xclass; m = xclass.load('/tmp/warm.bin'); m.predict('| leaf', k=2); m.explain('| leaf')" \
    && rm /tmp/warm.bin \
    && chmod -R go-w,a+rX /opt/cache \
    && useradd --system --no-create-home xclass
USER xclass
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["xclass", "serve"]
CMD ["--models", "/models", "--http", "0.0.0.0:8000"]
