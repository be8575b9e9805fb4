"""Replays: a stream's history run again, for the command line and Dagster's job alike."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipelines.host.control import PartitionAccount
from penstock.platform.clock import now_ms
from penstock.platform.errors import RunNameError, UnknownOriginError, UnknownStreamError
from penstock.platform.settings import Settings
from penstock.platform.standstill import standing_still
from penstock.platform.streams import plan_anew

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipelines.plan.source import Source
    from penstock.pipelines.plan.stage import Plan
    from penstock.pipelines.spark.stored import Stored
    from penstock.platform.control import ControlStore

_OFFSETS = re.compile(r"\d+(=\d+(,\d+=\d+)*)?")


@dataclass(frozen=True)
class Start:
    """Where a replay begins: `archive`, `topic`, `offset:N`, `offset:PARTITION=N,…`, or `time:…` in UTC."""

    kind: str
    offsets: Mapping[int | None, int] | None = None
    at_ms: int = 0


@dataclass(frozen=True)
class Order:
    """What is asked for. Without `switch` the results stay beside, and are the last there are of these records."""

    stream: str
    start: str = "topic"
    switch: bool = True
    drop_earlier: bool = False
    name: str = ""
    records_per_batch: int | None = None


@dataclass(frozen=True)
class Replayed:
    """What came of it: where the tables are, the batch that the stream goes on after, and every record."""

    stream: str
    name: str
    tables: str
    batch: int | None
    accounts: Mapping[str, int]


def start_from(words: str) -> Start:
    """Read where a replay begins. UnknownOriginError says what can be written."""
    kind, _, rest = words.partition(":")
    if words in ("archive", "topic"):
        return Start(kind)
    if kind == "offset" and _OFFSETS.fullmatch(rest):
        pairs = [part.split("=") for part in rest.split(",")]
        return Start(kind, {int(pair[0]) if len(pair) > 1 else None: int(pair[-1]) for pair in pairs})
    if kind == "time":
        try:
            at = datetime.fromisoformat(rest)
        except ValueError:
            pass
        else:
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            return Start(kind, at_ms=round(aware.timestamp() * 1000))
    raise UnknownOriginError(
        f"--from {words!r} is no place to begin: write archive, topic, offset:1000, offset:0=1000,1=950 or "
        "time:2026-01-31T12:00:00, which is UTC"
    )


def replay(settings: Settings, store: "ControlStore", order: Order, tell: Callable[[str], None]) -> Replayed:
    """Run a stream's history again, and put it in the place of what the stream wrote, or leave it beside."""
    from penstock.pipelines.catalog import names
    from penstock.pipelines.host.folders import switching
    from penstock.platform.local_spark import spark_session

    start = start_from(order.start)
    if order.stream not in names():
        raise UnknownStreamError(
            f"there is no pipeline {order.stream!r} to replay; there are: {', '.join(names())}"
        )
    begun = switching(settings.home / "streams", order.stream)
    chosen = begun or order.name or f"replay-{datetime.fromtimestamp(now_ms() / 1000, UTC):%Y%m%dT%H%M%SZ}"
    _check_name(settings, order.stream, chosen, switch=order.switch or begun != "")
    plan = plan_anew(order.stream)
    with spark_session(settings, f"replay-{order.stream}", tell) as session:
        stored = stored_from(session, plan, settings, start)
        if order.switch or begun:
            return _switched(settings, store, order, chosen, plan, session, stored, tell)
        return _beside(settings, order, chosen, plan, session, stored, tell)


def _check_name(settings: Settings, stream: str, name: str, *, switch: bool) -> None:
    """Raise RunNameError for what cannot be a name, and for that of results which this replay did not make."""
    from penstock.pipelines.store.files import tables_below
    from penstock.platform.bounded import check_name

    check_name(name)
    place = Path("runs", stream, name)
    replays, runs = settings.home / "streams" / stream / name, settings.home / place
    # Tables take a batch once: those of another run would keep what they have, and be taken for this one's.
    if not (replays if switch else runs).exists() and any(tables_below(settings.tables / place)):
        raise RunNameError(f"{place} has results of another run already: give this replay another --name")


def stored_from(session: "SparkSession", plan: "Plan", settings: Settings, start: Start) -> "Stored":
    """The records of a pipeline's topics from where a replay begins."""
    from penstock.pipelines.spark.stored.together import StoredTogether

    return StoredTogether([_source_from(session, source, settings, start) for source in plan.sources])


def _source_from(session: "SparkSession", source: "Source", settings: Settings, start: Start) -> "Stored":
    from penstock.pipelines.archive.names import records_path
    from penstock.pipelines.batch.inputs import topic_of
    from penstock.pipelines.plan.source import Files
    from penstock.pipelines.spark.stored.formats import stored_files
    from penstock.pipelines.spark.stored.since import Continued, Since
    from penstock.pipelines.spark.stored.topic import StoredTopic
    from penstock.platform.bounded import stored_input

    topic = stored_input(session, source, settings)
    if isinstance(source.origin, Files) or not isinstance(topic, StoredTopic) or start.kind == "topic":
        return topic
    if start.kind == "archive":
        path = str(settings.tables / records_path(topic_of(source)))
        return Continued(stored_files(session, source, path, "delta"), topic)
    if start.kind == "time":
        return Since(topic, topic.offsets_at(start.at_ms))
    given = start.offsets or {}
    spans = topic.ranges()
    return Since(topic, {s.name: given.get(s.partition, given.get(None, s.start)) for s in spans})


def _switched(
    settings: Settings,
    store: "ControlStore",
    order: Order,
    name: str,
    plan: "Plan",
    session: "SparkSession",
    stored: "Stored",
    tell: Callable[[str], None],
) -> Replayed:
    from penstock.pipelines.host.telling import batch_record
    from penstock.pipelines.spark.replay import Places, Replay, summed
    from penstock.pipelines.store.files import remove_below
    from penstock.platform.bounded import bounded_config

    places = Places(settings.home / "streams", settings.tables, order.stream, name)
    config = bounded_config(settings, places.folder, places.beside, order.records_per_batch)
    made = Replay(plan, session, stored, places, config, now_ms, tell)
    if not order.drop_earlier:
        made.refuse_to_forget()
    made.run_history()
    with standing_still(store, places.streams, order.stream, name, tell) as right:
        outcome = made.finish(right)
        # What batches before it did is in no table any more: the new ledger tells of its own.
        store.replace_batches(order.stream, outcome.batch_id)
        store.record_batch(batch_record(order.stream, outcome))
    remove_below(places.beside)  # each file is in the stream's own table by now
    accounts = summed(settings.tables / "ledger" / order.stream)
    return Replayed(order.stream, name, settings.warehouse, outcome.batch_id, _sums(accounts))


def _beside(
    settings: Settings,
    order: Order,
    name: str,
    plan: "Plan",
    session: "SparkSession",
    stored: "Stored",
    tell: Callable[[str], None],
) -> Replayed:
    from penstock.pipelines.spark.bounded import run_bounded
    from penstock.platform.bounded import bounded_config, result

    place = Path("runs", order.stream, name)
    config = bounded_config(settings, settings.home / place, settings.tables / place, order.records_per_batch)
    run_bounded(
        plan, session, stored, config, now_ms, lambda o, count: tell(f"batch {o.batch_id + 1} of {count}")
    )
    ran = result(plan, order.stream, name, config.warehouse)
    return Replayed(order.stream, name, ran.tables, None, ran.accounts)


def _sums(accounts: tuple[PartitionAccount, ...]) -> dict[str, int]:
    names = ("read", "folded", "late", "quarantined", "duplicate", "filtered")
    return {name: sum(getattr(account, name) for account in accounts) for name in names}
