# Dagster's webserver or daemon. The platform's code is loaded and run by the code server, from the image `host`.
FROM python:3.11.10-slim-bookworm AS build
WORKDIR /build
COPY docker/dagster.lock ./
RUN python -m venv /opt/penstock/venv \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --only-binary=:all: --no-deps --require-hashes -r dagster.lock
COPY infra/penstock /opt/penstock/code/penstock
COPY docker/dagster /opt/penstock/dagster
COPY docker/certificates /opt/penstock/certificates

FROM python:3.11.10-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin penstock \
    && install --directory --owner 10001 --group 10001 /var/lib/dagster
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/venv/bin:$PATH PYTHONPATH=/opt/penstock/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DAGSTER_HOME=/opt/penstock/dagster DAGSTER_DISABLE_TELEMETRY=1 DAGSTER_COMPUTE_LOGS=/tmp/dagster/logs
USER 10001:10001
# A volume that an engine creates, as Fargate does, inherits the folder's permissions: writable by everyone.
VOLUME /tmp
EXPOSE 3000
ENTRYPOINT ["python", "-m", "penstock.infra.container"]
CMD ["--help"]
