"""Checks that services answer: broker, registry, control store, object store, Spark master, Dagster, host."""

from collections.abc import Iterator

from penstock.core.errors import WaitTimeoutError
from penstock.engine.storage import ObjectStorePath, StoragePath
from penstock.infra.broker import wait_for_broker
from penstock.infra.ports import accepts_connections
from penstock.ingestion.contracts import load_catalog
from penstock.ingestion.registry.schema_registry import contract_subject
from penstock.platform.control import control_store_exists, open_control_store
from penstock.platform.control.reports import read_overview
from penstock.platform.doctor.finding import DoctorFinding, run_check
from penstock.platform.errors import StackError
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.services.warehouse_tables import iter_tables
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK

ANSWER_TIMEOUT_S = 2.0
SPARK_SCHEME = "spark://"
START_HINT = "`penstock up` starts it, and `penstock logs` shows why it stopped"


def check_services(settings: Settings) -> Iterator[DoctorFinding]:
    """Check that each service of the stack answers; starts nothing."""
    yield run_check("broker", lambda: _check_broker(settings))
    if settings.kafka.registry:
        yield run_check("registry", lambda: _check_registry(settings))
    yield run_check("control store", lambda: _check_control_store(settings))
    if isinstance(settings.warehouse_path, ObjectStorePath):
        yield run_check("warehouse", lambda: _check_warehouse(settings.warehouse_path))
    if settings.spark.master.startswith(SPARK_SCHEME):
        yield run_check("spark master", lambda: _check_spark_master(settings.spark.master))
    if settings.host_metrics_port:
        address = settings.host.local_metrics_address
        yield run_check("host", lambda: _check_port(settings.host_metrics_port, "the stream host", address))
    yield run_check("dagster ui", lambda: _check_port(settings.dagster.port, "Dagster's webserver"))
    if settings.dagster.storage_url:
        yield run_check("dagster storage", lambda: _check_dagster_storage(settings.dagster.storage_url or ""))
    yield run_check("dagster code", lambda: _check_port(settings.dagster.code_port, "Dagster's code server"))


def _check_broker(settings: Settings) -> str:
    servers = settings.kafka.bootstrap_servers
    try:
        wait_for_broker(servers, ANSWER_TIMEOUT_S, client_config=settings.kafka.client_config("host"))
    except WaitTimeoutError:
        raise StackError(f"no broker answers at {servers}. {START_HINT}") from None
    security = settings.kafka.security
    return f"answers at {servers}" + (f" with {security.protocol}" if security.is_secured else "")


def _check_registry(settings: Settings) -> str:
    registry, contracts = open_schema_registry(settings), load_catalog().contracts
    registered = [contract for contract in contracts if registry.list_versions(contract_subject(contract))]
    return f"answers at {settings.kafka.registry}, has {len(registered)} of {len(contracts)} topics"


def _check_spark_master(master: str) -> str:
    for address in master.removeprefix(SPARK_SCHEME).split(","):
        host, _, port = address.rpartition(":")
        if port.isdecimal() and accepts_connections(host, int(port), ANSWER_TIMEOUT_S):
            return f"answers at {address}"
    raise StackError(
        f"no Spark master answers at {master}. Start it, or set PENSTOCK_SPARK__MASTER to one that runs"
    )


def _check_dagster_storage(url: str) -> str:
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import SQLAlchemyError

    address = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(address, connect_args={"connect_timeout": int(ANSWER_TIMEOUT_S)})
    masked_url = address.set(drivername="postgresql").render_as_string(hide_password=True)
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise StackError(
            f"Dagster's storage at {masked_url} cannot be reached ({reason}). Start that server, or correct "
            "PENSTOCK_DAGSTER__STORAGE_URL"
        ) from None
    finally:
        engine.dispose()
    return f"answers at {masked_url}"


def _check_control_store(settings: Settings) -> str:
    if not control_store_exists(settings.control_url):
        return "not created yet"
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        return f"{len(read_overview(store))} streams"
    finally:
        store.close()


def _check_warehouse(warehouse: StoragePath) -> str:
    return f"{len(list(iter_tables(warehouse)))} tables at {warehouse}"


def _check_port(port: int, service: str, address: str = LOOPBACK) -> str:
    if not accepts_connections(address, port):
        raise StackError(f"{service} does not answer on port {port}. {START_HINT}")
    return f"answers on port {port}"
