# Serve the models of a folder over HTTP, see docs/serving.md:
#
#     docker build -f demo/serve.Dockerfile -t xclass-serve .
#     docker run --read-only --cap-drop ALL -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" xclass-serve
#
# Kernels are compiled while the image is built, for any processor with AVX2, which are those since 2013 (Intel) and 2015
# (AMD); elsewhere, build it with --build-arg CPU=generic. For options that a reduction does not have by default, each
# start may have to compile more, in memory: let a run with these options follow `xclass warmup` below.

FROM python:3.12-slim
ARG CPU=x86-64-v3
ENV NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES= XDG_CACHE_HOME=/opt/cache
COPY pyproject.toml README.md LICENSE /src/
COPY docs/xclass.1 /src/docs/
COPY xclass /src/xclass
RUN pip install --no-cache-dir '/src[serve]'
RUN xclass warmup && useradd --system --uid 999 --no-create-home xclass
USER 999
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["xclass", "serve"]
CMD ["--models", "/models", "--http", "0.0.0.0:8000"]
