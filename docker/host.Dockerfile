# The stream host, a Spark application that runs streams; the commands to feed and inspect it; and Dagster's code
# server, whose runs start Spark as the host does.
FROM python:3.11.10-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY infra/build.lock requirements.lock ./
RUN python -m venv /opt/penstock/venv \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes -r build.lock \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation --require-hashes -r requirements.lock
COPY ingestion/penstock /opt/penstock/code/penstock
COPY pipelines/penstock /opt/penstock/code/penstock
COPY quality/penstock /opt/penstock/code/penstock
COPY infra/penstock /opt/penstock/code/penstock
COPY platform/penstock /opt/penstock/code/penstock
COPY docker/dagster /opt/penstock/dagster
COPY docker/certificates /opt/penstock/certificates
RUN printf '#!/bin/sh\nexec python -m penstock.platform.cli "$@"\n' > /opt/penstock/venv/bin/penstock \
    && chmod 755 /opt/penstock/venv/bin/penstock
RUN PYTHONPATH=/opt/penstock/code /opt/penstock/venv/bin/python -m penstock.infra.jars --quiet --set spark --set store /opt/penstock/jars

FROM python:3.11.10-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin penstock \
    && install --directory --owner 10001 --group 10001 /var/lib/penstock /var/lib/dagster
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/venv/bin:$PATH PYTHONPATH=/opt/penstock/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DAGSTER_HOME=/opt/penstock/dagster DAGSTER_DISABLE_TELEMETRY=1 DAGSTER_COMPUTE_LOGS=/tmp/dagster/logs
USER 10001:10001
# A volume that an engine creates, as Fargate does, inherits a folder's permissions.
VOLUME ["/tmp", "/var/lib/penstock"]
EXPOSE 4000 9464
ENTRYPOINT ["python", "-m", "penstock.infra.container"]
CMD ["--help"]
