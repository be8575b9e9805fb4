"""What answers: broker, registry, control store, object store, Spark's master, Dagster, its storage, the host."""

from collections.abc import Iterator

from penstock.infra.broker import wait_for_broker
from penstock.infra.errors import NotInTimeError
from penstock.infra.ports import answers
from penstock.ingestion.contracts import declared
from penstock.ingestion.registry.registry import subject_of
from penstock.pipelines.store import Address, Place
from penstock.platform.control import control_exists, open_control
from penstock.platform.control.reports import overview
from penstock.platform.doctor.finding import Finding, look
from penstock.platform.errors import StackError
from penstock.platform.registry import registry_of
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.tables import tables

ANSWER_SECONDS = 2.0
SPARK = "spark://"
UP = "`penstock up` starts it, `penstock logs` says why it ended"


def reachable(settings: Settings) -> Iterator[Finding]:
    """Ask each part of the stack whether it is there; nothing is started."""
    yield look("broker", lambda: _broker(settings))
    if settings.kafka.registry:
        yield look("registry", lambda: _registry(settings))
    yield look("control store", lambda: _control(settings))
    if isinstance(settings.tables, Address):
        yield look("warehouse", lambda: _store(settings.tables))
    if settings.spark.master.startswith(SPARK):
        yield look("spark master", lambda: _spark(settings.spark.master))
    if settings.host_port:
        yield look("host", lambda: _port(settings.host_port, "the stream host"))
    yield look("dagster ui", lambda: _port(settings.dagster.port, "Dagster's webserver"))
    if settings.dagster.storage_url:
        yield look("dagster storage", lambda: _storage(settings.dagster.storage_url or ""))
    yield look("dagster code", lambda: _port(settings.dagster.code_port, "Dagster's code server"))


def _broker(settings: Settings) -> str:
    servers = settings.kafka.servers
    try:
        wait_for_broker(servers, ANSWER_SECONDS, client=settings.kafka.client("host"))
    except NotInTimeError:
        raise StackError(f"no broker answers at {servers}: {UP}") from None
    security = settings.kafka.security
    return f"answers at {servers}" + (f", by {security.protocol}" if security.is_on else "")


def _registry(settings: Settings) -> str:
    registry, contracts = registry_of(settings), declared().sound
    known = [contract for contract in contracts if registry.versions(subject_of(contract))]
    return f"answers at {settings.kafka.registry}, and knows {len(known)} of {len(contracts)} topics"


def _spark(master: str) -> str:
    for place in master.removeprefix(SPARK).split(","):
        host, _, port = place.rpartition(":")
        if port.isdecimal() and answers(host, int(port), ANSWER_SECONDS):
            return f"answers at {place}"
    raise StackError(
        f"no Spark master answers at {master}: start it, or set PENSTOCK_SPARK__MASTER to one that runs"
    )


def _storage(url: str) -> str:
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import SQLAlchemyError

    address = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(address, connect_args={"connect_timeout": int(ANSWER_SECONDS)})
    shown = address.set(drivername="postgresql").render_as_string(hide_password=True)
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        said = str(error.__cause__ or error).strip().splitlines()[0]
        raise StackError(
            f"Dagster's storage at {shown} cannot be reached ({said}): start that server, or correct "
            "PENSTOCK_DAGSTER__STORAGE_URL"
        ) from None
    finally:
        engine.dispose()
    return f"answers at {shown}"


def _control(settings: Settings) -> str:
    if not control_exists(settings.control_url):
        return "not made yet"
    store = open_control(settings.control_url, settings.control_secret)
    try:
        return f"{len(overview(store))} streams known"
    finally:
        store.close()


def _store(warehouse: Place) -> str:
    return f"{len(list(tables(warehouse)))} tables at {warehouse}"


def _port(port: int, what: str) -> str:
    if not answers(LOOPBACK, port):
        raise StackError(f"{what} does not answer on port {port}: {UP}")
    return f"answers on port {port}"
