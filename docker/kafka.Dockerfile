# One Kafka broker: Java, Kafka's jars, and the Python code that formats its folder.
# The first stage needs pyspark for Ivy; the second has only the jars and three packages.
FROM python:3.11.10-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY infra/build.lock requirements.lock ./
RUN python -m venv /build/venv \
    && /build/venv/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes -r build.lock \
    && /build/venv/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation --require-hashes -r requirements.lock
COPY infra/penstock /opt/penstock/code/penstock
RUN PYTHONPATH=/opt/penstock/code /build/venv/bin/python -m penstock.infra.jars --quiet --set kafka /opt/penstock/jars
COPY docker/kafka.lock ./
RUN python -m venv /opt/penstock/venv \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --only-binary=:all: --no-deps --require-hashes -r kafka.lock

FROM python:3.11.10-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin penstock \
    && install --directory --owner 10001 --group 10001 /var/lib/penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/venv/bin:$PATH PYTHONPATH=/opt/penstock/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
VOLUME /var/lib/penstock
EXPOSE 9092 9093
ENTRYPOINT ["python", "-m", "penstock.infra.container"]
CMD ["broker", "--help"]
