# Penstock with everything in it: the server, the runner, and the Java that comes from PyPI.
#   docker build -t penstock .
# Functions are called by the image's Python; its minor version has to be that of the people who
# write them: docker build --build-arg PYTHON=3.11 -t penstock .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:${PYTHON}-slim
COPY --from=wheel /wheels /wheels
COPY constraints.txt /wheels/
RUN python -m venv /opt/penstock
RUN wheel=$(echo /wheels/*.whl) && /opt/penstock/bin/python -m pip install --no-cache-dir \
    --constraint /wheels/constraints.txt "$wheel[all]"
# The user owns what it writes to. Volumes that are mounted there the first time take that over.
RUN useradd --uid 10001 --create-home penstock
RUN mkdir -p /data /lake /keys && chown penstock:penstock /data /lake /keys
USER penstock
WORKDIR /data
VOLUME ["/data", "/lake"]
ENV PATH=/opt/penstock/bin:$PATH
ENV PENSTOCK__STORAGE__DATA=/data
ENV PENSTOCK__STORAGE__ROOT=/lake
# From outside of the container; with a key only.
ENV PENSTOCK__SERVER__HOST=0.0.0.0
ENV PENSTOCK__AUTH__ENABLED=true
EXPOSE 2333
HEALTHCHECK --start-period=60s --interval=10s --timeout=5s CMD ["python", "-c", \
    "from urllib.request import urlopen; urlopen('http://127.0.0.1:2333/readyz')"]
ENTRYPOINT ["penstock"]
CMD ["serve"]
