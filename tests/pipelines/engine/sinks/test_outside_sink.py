"""A sink outside of the source tree, which is no Delta table, works everywhere without an edit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from tests.installed_kinds import installed_kinds
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import (
    PLAN,
    KillSchedule,
    SimulatedKill,
    make_batches,
    make_window_plan,
    run_batches,
)
from tests.pipelines.engine.spark.test_live_stream import TEN_SECONDS, expect_windows, list_windows
from tests.pipelines.engine.spark.test_live_stream import build_plan as bounded_plan
from tests.pipelines.outside_kinds import SINKS

from penstock import stream
from penstock.core.clock import now_ms
from penstock.engine.batch.commit_recovery import finish_commits
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.errors import DefinitionError, ReplayError
from penstock.engine.explain import explain
from penstock.engine.explain.mermaid import render_mermaid
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.history.replaced_tables import list_replaced_tables, refuse_lasting_sinks
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_paths import list_owned_paths
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.engine.windows.sessions import Sessions
from penstock.platform.maintenance.table_upkeep import remove_unneeded_files
from penstock.stream import fixed
from penstock.stream.keyword_registries import SINK_KEYWORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQLITE = {"table": "readings", "mode": "sqlite", "file": "readings.sqlite"}
JSON_LINES = {"table": "lines", "mode": "json_lines"}
HOUR_MS = 3_600_000
KILLED_BATCH = 3
"""A batch that writes all sinks, after another one and before the last."""


@pytest.fixture(autouse=True)
def _outside_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_sinks": SINKS}
    with installed_kinds(
        tmp_path,
        monkeypatch,
        SINK_KEYWORDS,
        modules,
        sqlite="outside_sinks:sqlite",
        json_lines="outside_sinks:json_lines",
    ):
        yield


def parse(*sinks: dict[str, Any], **changes: Any) -> stream.Pipeline:
    document = {
        "read": "sensors",
        "key": "device",
        "aggregate": {"n": "count()"},
        "window": {"fixed": "1 minute"},
        "write": list(sinks),
    }
    return stream.from_document(document | changes)


def make_outside_sink(name: str, *arguments: Any) -> Any:
    return getattr(import_module("outside_sinks"), name)(*arguments)


def outside_plan(plan: Plan = PLAN) -> Plan:
    sinks = (
        make_outside_sink("SqliteTable", "values"),
        make_outside_sink("JsonLines", "lines"),
        PaneLog("stream"),
        LatestValues("stream"),
    )
    return replace(plan, stages=(replace(plan.only_stage, sinks=sinks),))


def test_python_and_yaml_build_the_same_plan_by_entry_point_module_and_class() -> None:
    pipeline = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.fixed("1 minute"))
        .write("readings", mode="sqlite", file="readings.sqlite")
    )
    for mode in ("sqlite", "outside_sinks:sqlite", "outside_sinks:SqliteTable"):
        assert parse(SQLITE | {"mode": mode}).plan == pipeline.plan
        again = pipeline.write("more", mode=mode)
        assert again.plan.only_stage.sinks[1] == make_outside_sink("SqliteTable", "more")


def test_a_stored_plan_names_the_module_and_class_of_a_sink() -> None:
    plan = parse(SQLITE, JSON_LINES).plan
    stored = json.loads(json.dumps(plan_to_dict(plan)))
    assert stored["plan"]["stages"][0]["sinks"] == [
        {"kind": "outside_sinks:SqliteTable", "table": "readings", "file": "readings.sqlite"},
        {"kind": "outside_sinks:JsonLines", "table": "lines"},
    ]
    assert plan_from_dict(stored) == plan
    assert fingerprint(plan_from_dict(stored)) == fingerprint(plan)


def test_explain_describes_an_outside_sink() -> None:
    plan = parse(SQLITE, JSON_LINES).plan
    text = str(explain(plan))
    assert "upsert the latest value per key and window into readings in readings.sqlite" in text
    assert "append every pane to JSON lines in external/lines" in text
    chart = render_mermaid(plan)
    assert "readings: latest value per key and window" in chart
    assert "lines: every pane" in chart


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        (SQLITE | {"mode": "sqlit"}, "write.mode: there is no sink 'sqlit'. Did you mean 'sqlite'?"),
        (SQLITE | {"mode": "outside_sinks:closing"}, "outside_sinks:closing is not a sink"),
        (SQLITE | {"mode": "no_such_module:sqlite"}, "cannot be loaded"),
        (SQLITE | {"fil": "x"}, "Its arguments are: table, file"),
        (SQLITE | {"table": "a/b"}, "write.table: 'a/b'"),
        (SQLITE | {"output": "aside"}, "write.output: aside with mode sqlite"),
    ],
)
def test_a_wrong_definition_names_the_field_and_the_fix(sink: dict[str, Any], problem: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = parse(sink).plan
    assert problem in str(refused.value)


def test_an_outside_sink_of_latest_values_follows_the_rules_of_latest_values() -> None:
    changes = {"trigger": {"repeatedly": {"after_count": 1}}, "accumulation": "discarding"}
    assert parse(JSON_LINES, **changes).plan
    with pytest.raises(DefinitionError, match="discarding for a table of latest values"):
        _ = parse(SQLITE, **changes).plan


def test_two_sinks_cannot_share_a_path() -> None:
    with pytest.raises(DefinitionError, match="table lines is written by both"):
        _ = parse(SQLITE | {"table": "lines"}, JSON_LINES).plan


def test_a_new_append_only_sink_is_compatible_and_one_of_latest_values_needs_a_replay() -> None:
    before = parse({"table": "readings"}).plan
    for sink, upgrade_class in ((JSON_LINES, UpgradeClass.COMPATIBLE), (SQLITE, UpgradeClass.REPLAY)):
        after = parse({"table": "readings"}, sink | {"table": "more"}).plan
        assert compare_plans(before, after).upgrade_class == upgrade_class


def test_a_replay_is_refused_if_a_sink_cannot_be_replaced() -> None:
    refuse_lasting_sinks(parse(SQLITE).plan)
    assert "external/readings" in list_replaced_tables(parse(SQLITE).plan)
    with pytest.raises(ReplayError, match="external/lines cannot be replaced by the content of a replay"):
        refuse_lasting_sinks(parse(JSON_LINES).plan)


def test_an_outside_sink_is_no_table_of_the_warehouse() -> None:
    paths = list_owned_paths(parse(SQLITE, JSON_LINES).plan)
    assert not [path for path in paths if path.startswith("external/")]


def read_sqlite(bench: Bench) -> list[dict[str, Any]]:
    rows = make_outside_sink("SqliteTable", "values").read_rows(
        bench.warehouse / "external/values", "stream", 100
    )
    return sorted(rows.to_pylist(), key=repr)


def read_lines(bench: Bench) -> list[dict[str, Any]]:
    files = (bench.warehouse / "external/lines").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def to_lines(rows: list[dict[str, Any]], table: pa.Table) -> list[dict[str, Any]]:
    content = pl.DataFrame(pl.from_arrow(pa.Table.from_pylist(rows, table.schema))).write_ndjson()
    return [json.loads(line) for line in content.splitlines()]


def assert_content(bench: Bench) -> None:
    """Compare both sinks with the Delta tables of the same stream; nothing is staged any more."""
    assert read_sqlite(bench) == bench.rows("latest/stream")
    panes = pa.table(open_delta_table(bench.warehouse / "panes/stream").to_pyarrow_table())
    lines = to_lines(bench.rows("panes/stream"), panes)
    assert sorted(map(repr, read_lines(bench))) == sorted(map(repr, lines))
    assert len({line["batch_id"] for line in lines}) >= 3
    assert not list((bench.warehouse / "external").glob("*/*.parquet"))


@pytest.mark.parametrize("plan", [PLAN, make_window_plan(Sessions(8))], ids=["fixed", "sessions"])
@pytest.mark.parametrize("steps", [-1, 3, 9, 15, 21])
def test_outside_sinks_hold_the_content_of_tables_of_the_same_stream(
    tmp_path: Path, plan: Plan, steps: int
) -> None:
    bench = Bench(outside_plan(plan), tmp_path / "bench")
    run_batches(bench, KillSchedule(steps))
    removed = dict(
        remove_unneeded_files(
            bench.warehouse, [bench.folder / "stream"], HOUR_MS, now_ms() + 2 * HOUR_MS, dry_run=False
        )
    )
    expected_removals = {"external/values": 1, "external/lines": 1} if steps == 21 else {}
    assert removed == expected_removals
    assert_content(bench)


KILLED_PROCESS = """
import os, signal, sys
from pathlib import Path
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import run_batches
from tests.pipelines.engine.sinks.test_outside_sink import KILLED_BATCH, outside_plan

target_name, step, folder = sys.argv[1:]
target = getattr(__import__("outside_sinks"), target_name)

def kill(batch_id):
    if batch_id == KILLED_BATCH:
        os.kill(os.getpid(), signal.SIGKILL)

def commit(self, batch_id, change, clock, commit=target.commit):
    assert all((self.folder / file.path).exists() for file in change.adds)
    kill(batch_id)
    return commit(self, batch_id, change, clock)

def apply(self, batch_id, rows, apply=target.apply):
    applied = apply(self, batch_id, rows)
    kill(batch_id)
    return applied

setattr(target, step, {"commit": commit, "apply": apply}[step])
run_batches(Bench(outside_plan(), Path(folder)))
"""


@pytest.mark.parametrize("target", ["SqliteTarget", "JsonLinesTarget"])
@pytest.mark.parametrize("step", ["commit", "apply"])
def test_a_batch_of_a_killed_process_is_applied_once(tmp_path: Path, target: str, step: str) -> None:
    """The process is killed between the journal and the commit, or after the rows are applied."""
    root = Path(__file__).parents[4]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{root}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", KILLED_PROCESS, target, step, str(tmp_path / "bench")]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    bench = Bench(outside_plan(), tmp_path / "bench")
    outcome = BatchJournal(tmp_path / "bench/stream/journal").read_last_outcome()
    assert outcome is not None
    assert outcome.batch_id == KILLED_BATCH
    run_batches(bench, batches=make_batches())
    assert_content(bench)
    undisturbed = Bench(PLAN, tmp_path / "undisturbed")
    run_batches(undisturbed)
    assert read_sqlite(bench) == undisturbed.rows("latest/stream")


class KilledTables(StreamTables):
    """Tables of a process that ends between the journal and the commits."""

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        if batch_id == KILLED_BATCH:
            raise SimulatedKill
        super().commit(batch_id, changes, clock)


def test_another_journal_writer_finishes_a_commit_once(tmp_path: Path) -> None:
    bench = Bench(outside_plan(), tmp_path / "bench")
    engine = bench.open(make_tables=KilledTables)
    for number, batch in enumerate(make_batches()[:KILLED_BATCH]):
        bench.feed(engine, replace(batch, id=number))
    with pytest.raises(SimulatedKill):
        bench.feed(engine, replace(make_batches()[KILLED_BATCH], id=KILLED_BATCH))
    outcome = BatchJournal(bench.folder / "stream/journal").read_last_outcome()
    assert outcome is not None
    before = read_sqlite(bench)
    for _ in range(2):
        finish_commits(outcome, bench.plan, bench.warehouse, {})
    assert before != read_sqlite(bench) == bench.rows("latest/stream")
    assert len(read_lines(bench)) == len(bench.rows("panes/stream"))


@pytest.mark.spark
def test_a_bounded_run_writes_the_content_of_its_tables_to_outside_sinks(
    spark: "SparkSession", tmp_path: Path
) -> None:
    records = [{"device": f"d{n % 5}", "at": n * 700, "temperature": float(n % 7)} for n in range(200)]
    files = tmp_path / "files"
    files.mkdir()
    (files / "part.json").write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    plan = bounded_plan("stored", fixed("10 seconds"))
    sinks = (
        *plan.only_stage.sinks,
        make_outside_sink("SqliteTable", "values"),
        make_outside_sink("JsonLines", "lines"),
    )
    plan = replace(plan, stages=(replace(plan.only_stage, sinks=sinks),))
    source = open_file_source(spark, plan.sources[0], str(files), "json")
    config = BoundedRunConfig(tmp_path / "run", tmp_path / "tables", 70)
    run_bounded(plan, spark, source, config, lambda: 5_000_000, lambda _outcome, _batches: None)
    rows = sinks[2].read_rows(tmp_path / "tables/external/values", plan.name, 100)
    assert list_windows(rows) == expect_windows(records, TEN_SECONDS, 10_000)
    lines = (tmp_path / "tables/external/lines").glob("*.jsonl")
    panes = [json.loads(line) for file in lines for line in file.read_text("utf-8").splitlines()]
    assert sum(line["n"] if line["kind"] == "insert" else -line["n"] for line in panes) == len(records)
