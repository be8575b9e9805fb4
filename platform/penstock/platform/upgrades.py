"""Upgrades of streams: what a changed pipeline takes and costs, and doing it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.pipelines.catalog import names
from penstock.pipelines.host.folders import folder_of_stream
from penstock.pipelines.upgrade.classes import Class, Upgrade
from penstock.platform.errors import UnknownStreamError, UpgradeRefusedError
from penstock.platform.lifecycle import VERBS, ask, wait_for
from penstock.platform.settings import Settings
from penstock.platform.standstill import standing_still
from penstock.platform.streams import plan_anew

if TYPE_CHECKING:
    from penstock.pipelines.plan.stage import Plan
    from penstock.platform.control import ControlStore

BATCHES_LOOKED_AT = 1_000
RESTART_SECONDS = 120.0


@dataclass(frozen=True)
class Cost:
    """What an upgrade has to go through, and about how long that takes by the pace of the stream's own batches."""

    windows: int
    state_bytes: int
    records: int
    records_per_second: float | None

    @property
    def seconds(self) -> float | None:
        """About how long a replay takes; None where the stream has read nothing lately to tell by."""
        return self.records / self.records_per_second if self.records_per_second else None


@dataclass(frozen=True)
class Planned:
    """An upgrade before it is done. `upgrade` is None for a stream without a state: it simply starts."""

    stream: str
    upgrade: Upgrade | None
    start: str
    cost: Cost

    @property
    def takes(self) -> Class:
        """What the upgrade takes."""
        return Class.SAME if self.upgrade is None else self.upgrade.takes

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        differences = () if self.upgrade is None else self.upgrade.differences
        return {
            "stream": self.stream,
            "takes": self.takes.word,
            "differences": [{**asdict(each), "takes": each.takes.word} for each in differences],
            "cost": {**asdict(self.cost), "replay_from": self.start, "replay_seconds": self.cost.seconds},
        }


@dataclass(frozen=True)
class UpgradeOrder:
    """What is asked for: columns that may count from now on, where a replay would begin, the most it may take."""

    stream: str
    from_now: tuple[str, ...] = ()
    start: str = ""
    accept: Class = Class.REPLAY
    wait_seconds: float = RESTART_SECONDS


def plan_upgrade(settings: Settings, store: "ControlStore", order: UpgradeOrder) -> Planned:
    """Say what it takes to have a stream go by its definition as it is written now. Changes nothing."""
    from penstock.pipelines.upgrade.stored import upgrade_of

    if order.stream not in names():
        raise UnknownStreamError(f"there is no pipeline {order.stream!r}; there are: {', '.join(names())}")
    plan = plan_anew(order.stream)
    folder = folder_of_stream(settings.home / "streams", order.stream)
    found = upgrade_of(folder, plan, order.from_now)
    return Planned(order.stream, found, order.start or _start(settings, plan), _cost(store, plan, folder))


def upgrade(
    settings: Settings, store: "ControlStore", order: UpgradeOrder, tell: Callable[[str], None]
) -> Planned:
    """Do what it takes; returns what was planned. A stream that is not to run is upgraded and left at rest.

    UpgradeRefusedError, and nothing is done, where it takes more than the order accepts.
    """
    planned = plan_upgrade(settings, store, order)
    check_accepted(planned, order.accept)
    match planned.takes:
        case Class.SAME | Class.COMPATIBLE:
            wish = store.desired().get(order.stream)
            if planned.takes is Class.COMPATIBLE and wish is not None and wish.held:
                tell("restarting the stream")
                restart = replace(VERBS["restart"], desired=wish.desired)  # one that is paused stays so
                wait_for(store, ask(store, order.stream, restart, (order.stream,)), order.wait_seconds)
        case Class.MIGRATABLE:
            _migrate(settings, store, order, tell)
        case Class.REPLAY:
            from penstock.platform.replay import Order, replay

            replay(settings, store, Order(order.stream, planned.start), tell)
    return planned


def check_accepted(planned: Planned, accept: Class) -> None:
    """Raise UpgradeRefusedError, which says what the upgrade takes and why, where that is more than accepted."""
    if planned.takes <= accept:
        return
    differences = planned.upgrade.differences if planned.upgrade else ()
    why = "; ".join(f"{d.what} was {d.before}, is {d.after}" for d in differences if d.takes > accept)
    raise UpgradeRefusedError(
        f"the upgrade of {planned.stream} takes more than {accept.word}, which is all that was accepted. It is "
        f"{planned.takes.word}: {planned.takes.says} ({why}). `penstock stream plan-upgrade {planned.stream}` "
        f"shows what that costs; to have it done, accept {planned.takes.word}"
    )


def _migrate(
    settings: Settings, store: "ControlStore", order: UpgradeOrder, tell: Callable[[str], None]
) -> None:
    from penstock.pipelines.fold.graph import ready_graph
    from penstock.pipelines.host.telling import batch_record
    from penstock.pipelines.spark.fields import FieldTypes
    from penstock.pipelines.upgrade.state import migrate
    from penstock.platform.local_spark import spark_session

    plan = plan_anew(order.stream)
    streams = settings.home / "streams"
    with spark_session(settings, f"upgrade-{order.stream}", tell) as session:
        graph = ready_graph(plan, FieldTypes(session).of(plan))
        with standing_still(store, streams, order.stream, "an upgrade", tell) as right:
            tell("rewriting the state")
            folder = folder_of_stream(streams, order.stream)
            _finish(settings, folder, plan)
            outcome = migrate(folder, plan, graph, order.from_now, right.epoch)
            store.record_batch(batch_record(order.stream, outcome))


def _finish(settings: Settings, folder: Path, plan: "Plan") -> None:
    """Commit what a host that was killed had decided: only the newest batch is told to tables again."""
    from penstock.pipelines.batch.journal import Journal
    from penstock.pipelines.batch.settling import settle

    last = Journal(folder / "journal").last_outcome()
    if last is not None:
        clients = {
            "bootstrap.servers": settings.kafka.servers,
            "log_level": "2",
            **settings.kafka.client("host"),
        }
        settle(last, plan, settings.tables, clients)


def _start(settings: Settings, plan: "Plan") -> str:
    """Where a replay begins that nobody said more of: the archives, if there is one of each topic."""
    from penstock.pipelines.archive.names import records_path
    from penstock.pipelines.batch.inputs import topic_of
    from penstock.pipelines.store.files import is_table

    kept = [settings.tables / records_path(topic_of(source)) for source in plan.sources]
    return "archive" if all(is_table(place) for place in kept) else "topic"


def _cost(store: "ControlStore", plan: "Plan", folder: Path) -> Cost:
    from penstock.pipelines.batch.journal import Journal
    from penstock.platform.control.reports import summarise

    last = Journal(folder / "journal").last_outcome()
    if last is None:
        return Cost(0, 0, 0, None)
    files = [folder / "state" / stage / name for stage, kept in last.state_files.items() for name in kept]
    lately = summarise(store, plan.name, last.batch_id - BATCHES_LOOKED_AT)
    pace = lately.read / lately.duration_ms * 1000 if lately and lately.read and lately.duration_ms else None
    size = sum(file.stat().st_size for file in files if file.exists())
    return Cost(last.state_rows, size, sum(last.ends.values()), pace)
