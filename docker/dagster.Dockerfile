# Dagster's webserver or daemon. Neither loads code of ours: the code server does, and runs it, from the image `host`.
FROM python:3.11.10-slim-bookworm AS build
WORKDIR /build
COPY docker/dagster.lock ./
RUN python -m venv /opt/penstock/venv \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes -r dagster.lock
COPY infra/penstock /opt/penstock/code/penstock
COPY docker/dagster /opt/penstock/dagster
COPY docker/certificates /opt/penstock/certificates

FROM python:3.11.10-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/venv/bin:$PATH PYTHONPATH=/opt/penstock/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DAGSTER_HOME=/opt/penstock/dagster DAGSTER_DISABLE_TELEMETRY=1
USER 10001:10001
# Where an engine puts a volume of its own, as Fargate does, the folder has the rights that it has here: anybody's.
VOLUME /tmp
EXPOSE 3000
ENTRYPOINT ["python", "-m", "penstock.infra.container"]
CMD ["--help"]
