# Dagster's code server, webserver or daemon. It asks for streams and runs none, so there is no Java in it.
FROM python:3.11.10-slim-bookworm AS build
WORKDIR /build
COPY requirements.lock ./
RUN python -m venv /opt/penstock/venv \
    && /opt/penstock/venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements.lock
COPY ingestion/penstock /opt/penstock/code/penstock
COPY pipelines/penstock /opt/penstock/code/penstock
COPY quality/penstock /opt/penstock/code/penstock
COPY infra/penstock /opt/penstock/code/penstock
COPY platform/penstock /opt/penstock/code/penstock
COPY docker/dagster /opt/penstock/dagster

FROM python:3.11.10-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin penstock \
    && install --directory --owner 10001 --group 10001 /var/lib/penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/venv/bin:$PATH PYTHONPATH=/opt/penstock/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DAGSTER_HOME=/opt/penstock/dagster DAGSTER_DISABLE_TELEMETRY=1
USER 10001:10001
VOLUME /var/lib/penstock
EXPOSE 3000 4000
ENTRYPOINT ["python", "-m", "penstock.infra.container"]
CMD ["--help"]
