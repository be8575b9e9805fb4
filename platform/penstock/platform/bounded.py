"""From settings to a pipeline's run over stored records."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pyarrow.compute as pc

from penstock.infra.kafka_access import spark_source
from penstock.pipelines.archive.names import records_path
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.catalog import names
from penstock.pipelines.host.folders import OF_A_STREAM, can_name_a_run
from penstock.pipelines.plan.source import FileFormat, Files, Source
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.archive import StoredArchive
from penstock.pipelines.spark.stored.formats import opened, stored_files
from penstock.pipelines.spark.stored.together import StoredTogether
from penstock.pipelines.spark.stored.topic import StoredTopic
from penstock.pipelines.store import Place, place_below
from penstock.pipelines.store.files import delta_table
from penstock.platform.clock import now_ms
from penstock.platform.errors import BatchSizeError, RunNameError, UnknownOriginError, UnknownStreamError
from penstock.platform.local_spark import spark_session
from penstock.platform.registry import schemas_of
from penstock.platform.settings import Settings
from penstock.platform.streams import plan_of
from penstock.platform.tables import tables
from penstock.quality.quarantine.sent_again import SentAgain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCOUNTS = ("read", "folded", "late", "quarantined", "duplicate", "filtered")


@dataclass(frozen=True)
class Ran:
    """What came of a run: where its tables are, how many rows each has, and what became of every record."""

    stream: str
    name: str
    tables: str
    rows: Mapping[str, int]
    accounts: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return asdict(self)


def run_stored(
    settings: Settings,
    stream: str,
    origin: str | None,
    name: str | None,
    records_per_batch: int | None,
    tell: Callable[[str], None],
    day: date | None = None,
) -> Ran:
    """Run a pipeline of the catalog over stored records; `tell` hears how it is getting on.

    With a day they are those that the archives took on it, in UTC, and the run is named after it.
    """
    if stream not in names():
        raise UnknownStreamError(f"there is no stream {stream!r}; there are: {', '.join(names())}")
    chosen = (
        name
        or (day.isoformat() if day else "")
        or datetime.fromtimestamp(now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    )
    check_name(chosen)
    plan = plan_of(stream) if origin is None else read_from(plan_of(stream), origin)
    place = Path("runs", stream, chosen)
    warehouse = settings.tables / place
    config = bounded_config(settings, settings.home / place, warehouse, records_per_batch)
    with spark_session(settings, f"run-{stream}", tell) as session:
        tell("counting records")
        parts = [
            archived_on(session, source, settings, day) if day else stored_input(session, source, settings)
            for source in plan.sources
        ]
        stored = StoredTogether(parts)
        run_bounded(
            plan, session, stored, config, now_ms, lambda o, count: tell(f"batch {o.batch_id + 1} of {count}")
        )
    return result(plan, stream, chosen, config.warehouse)


def check_name(name: str) -> None:
    """Raise RunNameError for what no run and no replay may be called: their folders have its name."""
    if not can_name_a_run(name):
        raise RunNameError(
            f"{name!r} is no name for a run or a replay: take up to 100 letters, digits, dots, _, - and =; "
            f"the first is a letter or a digit. None may be called {', '.join(OF_A_STREAM)}: streams do"
        )


def bounded_config(
    settings: Settings, directory: Path, warehouse: Place, records_per_batch: int | None
) -> BoundedConfig:
    """Return what a run over stored records is told. BatchSizeError where a form was told of less than one."""
    if records_per_batch is not None and records_per_batch < 1:
        raise BatchSizeError(
            f"records_per_batch is {records_per_batch}: write how many records a batch may have, 1 or more, or "
            "nothing for all at once"
        )
    return BoundedConfig(
        directory,
        warehouse,
        records_per_batch,
        driver_budget=settings.host.driver_budget_mb * 2**20,
        poison_limit=settings.host.poison_limit,
        schemas=schemas_of(settings).of,
        live=settings.tables,
        sent_again=SentAgain(settings.home / "quarantine"),
    )


def read_from(plan: Plan, origin: str) -> Plan:
    """Return the plan over files that are given as FORMAT:PATH."""
    form, _, path = origin.partition(":")
    if form not in get_args(FileFormat) or not path:
        raise UnknownOriginError(
            f"--from {origin!r} is not FORMAT:PATH; the format is one of {', '.join(get_args(FileFormat))}, "
            "as in delta:raw/sensors"
        )
    files = Files(path, cast("FileFormat", form))
    return replace(plan, sources=tuple(replace(source, origin=files) for source in plan.sources))


def stored_input(session: "SparkSession", source: Source, settings: Settings) -> Stored:
    """Return the records of a source that are there now."""
    match source.origin:
        case Files(path, form):
            return stored_files(session, source, str(place_below(settings.tables, path)), form)
        case topic:
            access = settings.kafka.access
            kafka, client = spark_source(access, "host"), settings.kafka.client("host")
            return StoredTopic(session, topic.topic, settings.kafka.servers, client, kafka)


def archived_on(session: "SparkSession", source: Source, settings: Settings, day: date) -> Stored:
    """Return the records of a source's topic that its archive took on a day."""
    path = str(settings.tables / records_path(topic_of(source)))
    rows = opened(session, source, path, "delta").where(f"day = DATE '{day.isoformat()}'")
    return StoredArchive(rows, source.name)


def result(plan: Plan, stream: str, name: str, warehouse: Place) -> Ran:
    """Look into the tables of a run that is over."""
    found = {f"{t.kind}/{t.name}": delta_table(t.place) for t in tables(warehouse)}
    ledger = found[f"ledger/{plan.name}"].to_pyarrow_table()
    return Ran(
        stream,
        name,
        str(warehouse),
        {address: table.count() for address, table in found.items()},
        {account: pc.sum(ledger.column(account)).as_py() or 0 for account in ACCOUNTS},
    )
