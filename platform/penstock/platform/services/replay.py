"""Replays of a stream's history, for the command line and Dagster's job."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.accounts import ACCOUNT_COUNTS, PartitionAccount
from penstock.platform.control.replay_history import MeasuredReplay, record_replay
from penstock.platform.errors import RunNameError, UnknownOriginError
from penstock.platform.services.left_out_records import parse_address
from penstock.platform.services.replay_estimate import ReplayEstimate, estimate_replay
from penstock.platform.services.stream_catalog import check_pipeline_exists, reload_plan
from penstock.platform.services.stream_hold import hold_stream
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.plan.sources import PlanSource
    from penstock.engine.plan.stages import Plan
    from penstock.engine.spark.bounded_sources import BoundedSource
    from penstock.platform.control import ControlStore

_OFFSETS_PATTERN = re.compile(r"\d+(=\d+(,\d+=\d+)*)?")


@dataclass(frozen=True)
class ReplayStart:
    """The start of a replay: `archive`, `topic`, `offset:N`, `offset:PARTITION=N,…`, or `time:…` in UTC."""

    kind: str
    offsets: Mapping[int | None, int] | None = None
    at_ms: int = 0


@dataclass(frozen=True)
class ReplayRequest:
    """A request for a replay. Without `switch`, the results stay in a folder beside the stream's tables."""

    stream: str
    start: str = "topic"
    switch: bool = True
    drop_earlier: bool = False
    name: str = ""
    records_per_batch: int | None = None
    left_out: tuple[str, ...] = ()
    """The addresses of records to leave out, as TOPIC/PARTITION@OFFSET."""


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay: its tables, the batch after which the stream resumes, and records by outcome.

    `seconds` is how long it took; for a resumed replay, since it was resumed.
    """

    stream: str
    name: str
    tables: str
    batch: int | None
    accounts: Mapping[str, int]
    seconds: float
    estimate: ReplayEstimate


def parse_replay_start(text: str) -> ReplayStart:
    """Parse the start of a replay. Raises UnknownOriginError with the valid forms."""
    kind, _, argument = text.partition(":")
    if text in ("archive", "topic"):
        return ReplayStart(kind)
    if kind == "offset" and _OFFSETS_PATTERN.fullmatch(argument):
        pairs = [part.split("=") for part in argument.split(",")]
        return ReplayStart(kind, {int(pair[0]) if len(pair) > 1 else None: int(pair[-1]) for pair in pairs})
    if kind == "time":
        try:
            start_time = datetime.fromisoformat(argument)
        except ValueError:
            pass
        else:
            aware_time = start_time if start_time.tzinfo else start_time.replace(tzinfo=UTC)
            return ReplayStart(kind, at_ms=round(aware_time.timestamp() * 1000))
    raise UnknownOriginError(
        f"--from {text!r} is not a valid start; use archive, topic, offset:1000, offset:0=1000,1=950 or "
        "time:2026-01-31T12:00:00 (UTC)"
    )


def replay_stream(
    settings: Settings, store: "ControlStore", request: ReplayRequest, report_progress: ProgressReporter
) -> ReplayResult:
    """Run a stream's history again; replace the stream's results with the new ones, or keep both."""
    from penstock.engine.stream_folders import read_unfinished_switch
    from penstock.platform.services.bounded_runs import build_named_run_config, run_and_read_result
    from penstock.platform.services.command_spark import open_command_spark

    start, started_s = parse_replay_start(request.start), monotonic()
    check_pipeline_exists(request.stream)
    unfinished_replay = read_unfinished_switch(settings.home / "streams", request.stream)
    run_name = (
        unfinished_replay
        or request.name
        or f"replay-{datetime.fromtimestamp(now_ms() / 1000, UTC):%Y%m%dT%H%M%SZ}"
    )
    _check_replay_name(settings, request.stream, run_name, switch=request.switch or unfinished_replay != "")
    is_resumed = (settings.home / "streams" / request.stream / run_name).exists()
    plan = reload_plan(request.stream)
    for address in request.left_out:
        parse_address(address, plan)
    with open_command_spark(settings, f"replay-{request.stream}", report_progress) as session:
        start_seconds = monotonic() - started_s
        source = open_replay_source(session, plan, settings, start)
        records = sum(offset_range.end - offset_range.start for offset_range in source.list_ranges())
        estimate = estimate_replay(store, request.stream, records)
        report_progress(str(estimate))
        batch = None
        if request.switch or unfinished_replay:
            batch, accounts = _replay_and_switch(
                settings, store, request, run_name, plan, session, source, report_progress
            )
            tables = settings.warehouse
        else:
            config = build_named_run_config(
                settings, plan, run_name, request.records_per_batch, request.left_out
            )
            run_result = run_and_read_result(plan, run_name, session, source, config, report_progress)
            tables, accounts = run_result.tables, run_result.accounts
    seconds = monotonic() - started_s
    if not is_resumed:
        record_replay(
            store,
            MeasuredReplay(
                request.stream, now_ms(), accounts["read"], seconds, start_seconds, estimate.seconds
            ),
        )
    return ReplayResult(request.stream, run_name, tables, batch, accounts, seconds, estimate)


def _check_replay_name(settings: Settings, stream: str, name: str, *, switch: bool) -> None:
    """Raise RunNameError for an invalid name, or one that already has results of another run."""
    from penstock.engine.storage.file_access import list_warehouse_tables
    from penstock.platform.services.bounded_runs import check_run_name

    check_run_name(name)
    run_path = Path("runs", stream, name)
    replay_folder, run_folder = settings.home / "streams" / stream / name, settings.home / run_path
    # A table accepts a batch ID once, so the batches of another run would pass for those of this replay.
    if not (replay_folder if switch else run_folder).exists() and any(
        list_warehouse_tables(settings.warehouse_path / run_path)
    ):
        raise RunNameError(
            f"{run_path} already has results of another run; choose another --name for this replay"
        )


def open_replay_source(
    session: "SparkSession", plan: "Plan", settings: Settings, start: ReplayStart
) -> "BoundedSource":
    """Return the records of a pipeline's topics from the start of a replay."""
    from penstock.engine.spark.bounded_sources.union_source import UnionSource

    return UnionSource([_open_source_from(session, source, settings, start) for source in plan.sources])


def _open_source_from(
    session: "SparkSession", source: "PlanSource", settings: Settings, start: ReplayStart
) -> "BoundedSource":
    from penstock.engine.archive.archive_names import records_path
    from penstock.engine.batch.input_watermarks import topic_of
    from penstock.engine.plan.sources import FileOrigin
    from penstock.engine.spark.bounded_sources.file_formats import open_file_source
    from penstock.engine.spark.bounded_sources.start_offsets import ArchiveThenTopicSource, SourceFromOffsets
    from penstock.engine.spark.bounded_sources.topic_source import TopicSource
    from penstock.platform.services.bounded_runs import open_stored_source

    full_source = open_stored_source(session, source, settings)
    if (
        isinstance(source.origin, FileOrigin)
        or not isinstance(full_source, TopicSource)
        or start.kind == "topic"
    ):
        return full_source
    if start.kind == "archive":
        path = str(settings.warehouse_path / records_path(topic_of(source)))
        return ArchiveThenTopicSource(open_file_source(session, source, path, "delta"), full_source)
    if start.kind == "time":
        return SourceFromOffsets(full_source, full_source.find_offsets_at(start.at_ms))
    start_offsets = start.offsets or {}
    offset_ranges = full_source.list_ranges()
    return SourceFromOffsets(
        full_source,
        {
            offset_range.name: start_offsets.get(
                offset_range.partition, start_offsets.get(None, offset_range.start)
            )
            for offset_range in offset_ranges
        },
    )


def _replay_and_switch(
    settings: Settings,
    store: "ControlStore",
    request: ReplayRequest,
    run_name: str,
    plan: "Plan",
    session: "SparkSession",
    source: "BoundedSource",
    report_progress: ProgressReporter,
) -> tuple[int, Mapping[str, int]]:
    """Replay and switch a stream; return the batch after which it resumes, and its records by outcome."""
    from penstock.engine.errors import ReplayError
    from penstock.engine.history.ledger_sums import sum_ledger
    from penstock.engine.history.replay import StreamReplay
    from penstock.engine.history.replay_paths import ReplayPaths
    from penstock.engine.host.control_reporter import to_batch_record
    from penstock.engine.storage.file_access import remove_tree
    from penstock.platform.services.bounded_runs import build_run_config

    replay_paths = ReplayPaths(settings.home / "streams", settings.warehouse_path, request.stream, run_name)
    config = build_run_config(
        settings,
        plan,
        replay_paths.replay_folder,
        replay_paths.replay_warehouse,
        request.records_per_batch,
        request.left_out,
    )
    stream_replay = StreamReplay(plan, session, source, replay_paths, config, now_ms, report_progress)
    if not request.drop_earlier:
        stream_replay.refuse_data_loss()
    stream_replay.run_history()
    if not request.drop_earlier:
        try:
            stream_replay.refuse_unreadable_records()
        except ReplayError:
            remove_tree(replay_paths.replay_warehouse)
            remove_tree(replay_paths.replay_folder)
            raise
    with hold_stream(store, replay_paths.streams_folder, request.stream, run_name, report_progress) as fence:
        outcome = stream_replay.finish_and_switch(fence)
        # No table has the results of earlier batches any more; the new ledger has its own batches.
        store.mark_batches_replaced(request.stream, outcome.batch_id)
        store.record_batch(to_batch_record(request.stream, outcome))
    remove_tree(replay_paths.replay_warehouse)  # every file now belongs to the stream's own tables
    accounts = sum_ledger(settings.warehouse_path / "ledger" / request.stream)
    return outcome.batch_id, _sum_accounts(accounts)


def _sum_accounts(accounts: tuple[PartitionAccount, ...]) -> dict[str, int]:
    return {name: sum(getattr(account, name) for account in accounts) for name in ACCOUNT_COUNTS}
