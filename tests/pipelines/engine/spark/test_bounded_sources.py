"""Bounded runs read files of every format and give the values of a live stream."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
    query_duckdb,
)

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import BoundedInputError, DefinitionError
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import FileFormat
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.triggers.default import Default
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_watermark, fixed, sliding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
CLOCK = 5_000_000
SCHEMA = pa.schema([("device", pa.string()), ("at", pa.int64()), ("temperature", pa.float64())])


def run_plan(
    session: "SparkSession",
    plan: Plan,
    stored: BoundedSource,
    folder: Path,
    max_records: int | None = None,
    on_outcome: Callable[[BatchOutcome, int], None] = lambda _outcome, _batches: None,
) -> BatchOutcome:
    config = BoundedRunConfig(folder / "run", folder / "tables", max_records)
    return run_bounded(plan, session, stored, config, lambda: CLOCK, on_outcome)


def read_table(folder: Path, name: str) -> pa.Table:
    return pa.table(DeltaTable(folder / "tables" / name).to_pyarrow_table())


def write_json(folder: Path, records: list[dict[str, Any]]) -> None:
    for number, part in enumerate((records[:100], records[100:])):
        lines = "".join(f"{json.dumps(record)}\n" for record in part)
        (folder / f"part-{number}.json").write_text(lines, encoding="utf-8")


def write_csv(folder: Path, records: list[dict[str, Any]]) -> None:
    with (folder / "part.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["at", "device", "note", "temperature"])
        writer.writeheader()
        writer.writerows({**record, "note": "a, b"} for record in records)


def write_parquet(folder: Path, records: list[dict[str, Any]]) -> None:
    for number, part in enumerate((records[:50], records[50:])):
        pq.write_table(
            pa.Table.from_pylist(part, SCHEMA), folder / f"part-{number}.parquet", row_group_size=30
        )


def write_instants(folder: Path, records: list[dict[str, Any]]) -> None:
    """Write event times as timestamps."""
    times = pa.array([record["at"] for record in records], pa.timestamp("ms", tz="UTC"))
    written = pa.Table.from_pylist(records, SCHEMA).set_column(1, "at", times)
    pq.write_table(written, folder / "part.parquet")


def write_delta(folder: Path, records: list[dict[str, Any]]) -> None:
    for part in (records[:150], records[150:]):
        write_deltalake(folder, pa.Table.from_pylist(part, SCHEMA), mode="append")


def write_archive(folder: Path, records: list[dict[str, Any]]) -> None:
    """Write records with their partition and offset."""
    rows = [
        {"partition": number % 2, "offset": 7 + number // 2, "value": json.dumps(record).encode()}
        for number, record in enumerate(records)
    ]
    schema = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
    write_deltalake(folder, pa.Table.from_pylist(rows, schema))


WRITERS: list[tuple[FileFormat, Callable[[Path, list[dict[str, Any]]], None]]] = [
    ("json", write_json),
    ("csv", write_csv),
    ("parquet", write_parquet),
    ("parquet", write_instants),
    ("delta", write_delta),
    ("delta", write_archive),
]


@pytest.mark.parametrize(("form", "write"), WRITERS, ids=lambda item: getattr(item, "__name__", item))
@pytest.mark.parametrize("max_records", [None, 70])
def test_files_of_every_format_are_read_completely(
    spark: "SparkSession",
    tmp_path: Path,
    form: FileFormat,
    write: Callable[[Path, list[dict[str, Any]]], None],
    max_records: int | None,
) -> None:
    sent, plan, files = (
        make_readings(300, seed=6),
        build_plan("stored", fixed("10 seconds")),
        tmp_path / "files",
    )
    files.mkdir()
    write(files, sent)
    stored = open_file_source(spark, plan.sources[0], str(files), form)
    last = run_plan(spark, plan, stored, tmp_path, max_records)
    assert last.watermark.value == MAX_TIMESTAMP_MS
    assert last.batch_id == (0 if max_records is None else 4)
    assert list_windows(read_table(tmp_path, "latest/by_stored")) == expect_windows(sent, TEN_SECONDS, 10_000)
    sums = "SELECT sum(read), sum(accepted), sum(late) FROM ledger"
    assert query_duckdb(sums, ledger=read_table(tmp_path, "ledger/by_stored")) == [(300, 300, 0)]


def test_an_invalid_line_is_quarantined_with_its_file_and_line_number(
    spark: "SparkSession", tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    good = json.dumps({"device": "a", "at": 5, "temperature": 1.5})
    (files / "a.json").write_text(f"{good}\n{good}\n", encoding="utf-8")
    (files / "b.json").write_text(f'{good}\n{{"device": \n{good}\n', encoding="utf-8")
    plan = build_plan("stored", fixed("10 seconds"))
    run_plan(
        spark, plan, open_file_source(spark, plan.sources[0], str(files), "json"), tmp_path, max_records=2
    )
    (invalid,) = read_table(tmp_path, "quarantine/stored").to_pylist()
    assert (invalid["partition"], invalid["offset"], invalid["value"]) == (1, 1, b'{"device": ')
    assert list_windows(read_table(tmp_path, "latest/by_stored")) == [("a", 0, 10_000, 4, 4, 6.0, 1.5, 1.5)]


def test_an_interrupted_run_resumes_and_a_finished_run_changes_nothing(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sent, plan, files = (
        make_readings(200, seed=7),
        build_plan("stored", fixed("10 seconds")),
        tmp_path / "files",
    )
    files.mkdir()
    write_parquet(files, sent)
    stored = open_file_source(spark, plan.sources[0], str(files), "parquet")

    def interrupt(outcome: BatchOutcome, batches: int) -> None:
        if outcome.batch_id == 1 < batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(spark, plan, stored, tmp_path, 60, interrupt)
    write_json(files, sent)
    run_plan(spark, plan, stored, tmp_path, 60)
    first = read_table(tmp_path, "panes/by_stored")
    assert list_windows(read_table(tmp_path, "latest/by_stored")) == expect_windows(sent, TEN_SECONDS, 10_000)
    run_plan(spark, plan, stored, tmp_path, 60)
    assert read_table(tmp_path, "panes/by_stored").sort_by("batch_id") == first.sort_by("batch_id")


def test_missing_files_and_columns_are_reported(spark: "SparkSession", tmp_path: Path) -> None:
    source = build_plan("stored", fixed("10 seconds")).sources[0]
    with pytest.raises(BoundedInputError, match="absent"):
        open_file_source(spark, source, str(tmp_path / "absent"), "parquet")
    pq.write_table(pa.table({"time": [1], "device": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(
        BoundedInputError, match=r"no column 'at' for the event time.*Available columns: time, device"
    ):
        open_file_source(spark, source, str(tmp_path), "parquet")


def test_processing_time_windows_are_refused(spark: "SparkSession", tmp_path: Path) -> None:
    plan = build_plan("stored", fixed("10 seconds"))
    processing_time_plan = replace(
        plan, stages=(replace(plan.only_stage, window=Fixed(10, time="processing"), lateness=0),)
    )
    with pytest.raises(DefinitionError, match="it uses processing time, and stored records"):
        run_plan(
            spark, processing_time_plan, TopicSource(spark, "none", BrokerAccess("127.0.0.1:1")), tmp_path
        )


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"stored{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


TIME_WINDOWS: list[Window] = [
    fixed("10 seconds"),
    sliding("9 seconds", "3 seconds"),
    Sessions(400),
    Calendar("day", "Europe/Berlin"),
]


@pytest.mark.parametrize("window", TIME_WINDOWS, ids=lambda window: type(window).__name__)
@pytest.mark.parametrize("max_records", [None, 150])
def test_a_bounded_run_gives_the_values_of_the_last_live_panes(
    spark: "SparkSession",
    broker: LocalBroker,
    topic: str,
    tmp_path: Path,
    window: Window,
    max_records: int | None,
) -> None:
    plan = build_plan(topic, window)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_readings(400, seed=8)
    for begin in range(0, 400, 100):
        send(broker, topic, sent[begin : begin + 100], partition=begin // 100 % 2)
        runner.run_until_read(begin + 100)
    bounded_plan = replace(
        plan, stages=(replace(plan.only_stage, trigger=after_watermark(), may_finish=True),)
    )
    run_plan(
        spark,
        bounded_plan,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        tmp_path / "bounded",
        max_records,
    )
    live = list_windows(runner.table(f"latest/{plan.name}"))
    assert list_windows(read_table(tmp_path / "bounded", f"latest/{plan.name}")) == live
    assert sum(row[3] for row in live) >= 400


@pytest.mark.parametrize("window", [Tumbling(CountPolicy(7)), SlidingOrder(CountPolicy(5), CountPolicy(2))])
def test_order_windows_are_the_same_in_a_bounded_run(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, window: Window
) -> None:
    plan = build_plan(topic, window, lateness=0)
    plan = replace(plan, stages=(replace(plan.only_stage, trigger=Default()),))
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_readings(200, seed=9)
    for begin in range(0, 200, 50):
        send(broker, topic, sent[begin : begin + 50])
        runner.run_until_read(begin + 50)
    run_plan(
        spark,
        plan,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        tmp_path / "bounded",
        max_records=90,
    )
    order = "SELECT device, window_number, n, total, most, average FROM panes ORDER BY ALL"
    found = query_duckdb(order, panes=read_table(tmp_path / "bounded", f"panes/{plan.name}"))
    assert found == query_duckdb(order, panes=runner.table(f"panes/{plan.name}"))
    assert found
