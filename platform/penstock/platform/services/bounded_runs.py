"""Runs of pipelines over stored records."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pyarrow.compute as pc

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.engine.archive.archive_names import records_path
from penstock.engine.batch.accounts import ACCOUNT_COUNTS
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import FileFormat, FileOrigin, PlanSource
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.archive_source import ArchiveSource
from penstock.engine.spark.bounded_sources.file_formats import open_file_source, read_files
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.engine.storage import StoragePath, resolve_storage_path
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.stream_folders import STREAM_FOLDER_ENTRIES, is_valid_run_name
from penstock.ingestion.refused_records import RefusedReason
from penstock.platform.errors import BatchSizeError, RunNameError, UnknownOriginError
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.services.left_out_records import store_left_out
from penstock.platform.services.refused_in_runs import list_refused
from penstock.platform.services.schema_registry import open_writer_schemas
from penstock.platform.services.stream_catalog import check_pipeline_exists, load_plan
from penstock.platform.services.warehouse_tables import iter_tables
from penstock.platform.settings import Settings
from penstock.quality.quarantine.recorded_exclusions import RecordedExclusions
from penstock.quality.quarantine.replayed_records import ReplayedRecords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BoundedRunResult:
    """The result of a run: the location of its tables, their row counts, and the number of records by outcome.

    `refused` holds the reasons of quarantined records.
    """

    stream: str
    name: str
    tables: str
    rows: Mapping[str, int]
    accounts: Mapping[str, int]
    refused: tuple[RefusedReason, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self)


def run_over_stored_records(
    settings: Settings,
    stream: str,
    origin: str | None,
    name: str | None,
    records_per_batch: int | None,
    report_progress: ProgressReporter,
    day: date | None = None,
) -> BoundedRunResult:
    """Run a pipeline of the catalog over stored records.

    With a day, the input is what the archives stored on that day (UTC), and the run is named after the day.
    """
    check_pipeline_exists(stream)
    run_name = (
        name
        or (day.isoformat() if day else "")
        or datetime.fromtimestamp(now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    )
    check_run_name(run_name)
    plan = load_plan(stream)
    if origin is not None:
        plan = replace_sources(plan, origin)
        _check_files_exist(settings, origin)
    config = build_named_run_config(settings, plan, run_name, records_per_batch)
    with open_command_spark(settings, f"run-{stream}", report_progress) as session:
        report_progress("counting records")
        input_sources = [
            open_archived_day(session, source, settings, day)
            if day
            else open_stored_source(session, source, settings)
            for source in plan.sources
        ]
        return run_and_read_result(
            plan, run_name, session, UnionSource(input_sources), config, report_progress
        )


def build_named_run_config(
    settings: Settings,
    plan: Plan,
    run_name: str,
    records_per_batch: int | None,
    left_out: Sequence[str] = (),
) -> BoundedRunConfig:
    """Return the configuration of a run whose results are in runs/STREAM/NAME of the warehouse."""
    run_path = Path("runs", plan.name, run_name)
    return build_run_config(
        settings,
        plan,
        settings.home / run_path,
        settings.warehouse_path / run_path,
        records_per_batch,
        left_out,
    )


def run_and_read_result(
    plan: Plan,
    run_name: str,
    session: "SparkSession",
    source: BoundedSource,
    config: BoundedRunConfig,
    report_progress: ProgressReporter,
) -> BoundedRunResult:
    """Run a plan over a source to its end, and return the result."""
    run_bounded(
        plan,
        session,
        source,
        config,
        now_ms,
        lambda outcome, count: report_progress(f"batch {outcome.batch_id + 1} of {count}"),
    )
    return read_run_result(plan, run_name, config.warehouse)


def check_run_name(name: str) -> None:
    """Raise RunNameError if the name of a run or replay cannot be a folder name."""
    if not is_valid_run_name(name):
        raise RunNameError(
            f"{name!r} is not a valid name for a run or a replay. Use up to 100 letters, digits, dots, _, - and =, "
            f"starting with a letter or a digit. Reserved names: {', '.join(STREAM_FOLDER_ENTRIES)}"
        )


def build_run_config(
    settings: Settings,
    plan: Plan,
    directory: Path,
    warehouse: StoragePath,
    records_per_batch: int | None,
    left_out: Sequence[str] = (),
) -> BoundedRunConfig:
    """Return the configuration of a bounded run of a plan, without the records at these addresses.

    Raises BatchSizeError for less than one record per batch.
    """
    if records_per_batch is not None and records_per_batch < 1:
        raise BatchSizeError(
            f"records_per_batch is {records_per_batch}; use 1 or more, or leave it empty for a single batch"
        )
    return BoundedRunConfig(
        directory,
        warehouse,
        records_per_batch,
        settings=settings.host,
        schema_lookup=open_writer_schemas(settings).find_readable,
        live_warehouse=settings.warehouse_path,
        find_resent=RecordedExclusions(
            plan,
            settings.warehouse_path,
            ReplayedRecords(settings.home / "quarantine"),
            store_left_out(directory, plan, left_out),
        ),
    )


def replace_sources(plan: Plan, origin: str) -> Plan:
    """Return the plan with its sources replaced by the files of FORMAT:PATH."""
    file_format, _, path = origin.partition(":")
    if file_format not in get_args(FileFormat) or not path:
        raise UnknownOriginError(
            f"--from {origin!r} is not of the form FORMAT:PATH, for example delta:raw/sensors; formats: "
            f"{', '.join(get_args(FileFormat))}"
        )
    files = FileOrigin(path, cast("FileFormat", file_format))
    return replace(plan, sources=tuple(replace(source, origin=files) for source in plan.sources))


def _check_files_exist(settings: Settings, origin: str) -> None:
    """Raise UnknownOriginError, before Spark starts, for local files that do not exist."""
    file_format, _, text = origin.partition(":")
    path = resolve_storage_path(settings.warehouse_path, text)
    if not isinstance(path, Path) or path.exists() or any(character in text for character in "*?[{"):
        return
    nearby = Path.cwd() / text
    hint = f". Did you mean {file_format}:{nearby}?" if nearby.exists() else ""
    raise UnknownOriginError(
        f"--from {origin!r}: {path} does not exist; a relative path starts at the warehouse{hint}"
    )


def open_stored_source(session: "SparkSession", source: PlanSource, settings: Settings) -> BoundedSource:
    """Return the records that a source has now."""
    match source.origin:
        case FileOrigin(path, file_format):
            return open_file_source(
                session, source, str(resolve_storage_path(settings.warehouse_path, path)), file_format
            )
        case topic_origin:
            return TopicSource(session, topic_origin.topic, settings.kafka.broker_access("host"))


def open_archived_day(
    session: "SparkSession", source: PlanSource, settings: Settings, day: date
) -> BoundedSource:
    """Return the records of a source's topic that the archive stored on a day."""
    path = str(settings.warehouse_path / records_path(topic_of(source)))
    rows = read_files(session, source, path, "delta").where(f"day = DATE '{day.isoformat()}'")
    return ArchiveSource(rows, source.name)


def read_run_result(plan: Plan, name: str, warehouse: StoragePath) -> BoundedRunResult:
    """Read the result of a completed run from its tables."""
    delta_tables = {
        f"{table_entry.kind}/{table_entry.name}": open_delta_table(table_entry.path)
        for table_entry in iter_tables(warehouse)
    }
    ledger = delta_tables[f"ledger/{plan.name}"].to_pyarrow_table()
    return BoundedRunResult(
        plan.name,
        name,
        str(warehouse),
        {address: table.count() for address, table in delta_tables.items()},
        {account: pc.sum(ledger.column(account)).as_py() or 0 for account in ACCOUNT_COUNTS},
        list_refused(plan, warehouse, delta_tables),
    )
