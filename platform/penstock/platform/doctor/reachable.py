"""What answers: the broker, the control store, an object store, the webserver, the host."""

from collections.abc import Iterator

from penstock.infra.broker import wait_for_broker
from penstock.infra.errors import NotInTimeError
from penstock.infra.ports import answers
from penstock.pipelines.store import Address, Place
from penstock.platform.control import control_exists, open_control
from penstock.platform.control.reports import overview
from penstock.platform.doctor.finding import Finding, look
from penstock.platform.errors import StackError
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.tables import tables

ANSWER_SECONDS = 2.0
UP = "`penstock up` starts it, `penstock logs` says why it ended"


def reachable(settings: Settings) -> Iterator[Finding]:
    """Ask each part of the stack whether it is there; nothing is started."""
    yield look("broker", lambda: _broker(settings))
    yield look("control store", lambda: _control(settings))
    if isinstance(settings.tables, Address):
        yield look("warehouse", lambda: _store(settings.tables))
    if settings.host.metrics_port:
        yield look("host", lambda: _port(settings.host.metrics_port, "the stream host"))
    yield look("dagster ui", lambda: _port(settings.dagster.port, "Dagster's webserver"))
    yield look("dagster code", lambda: _port(settings.dagster.code_port, "Dagster's code server"))


def _broker(settings: Settings) -> str:
    servers = settings.kafka.servers
    try:
        wait_for_broker(servers, ANSWER_SECONDS, client=settings.kafka.client("host"))
    except NotInTimeError:
        raise StackError(f"no broker answers at {servers}: {UP}") from None
    security = settings.kafka.security
    return f"answers at {servers}" + (f", by {security.protocol}" if security.is_on else "")


def _control(settings: Settings) -> str:
    if not control_exists(settings.control_url):
        return "not made yet"
    store = open_control(settings.control_url)
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
