"""Random plans over random batches: a run that is killed at any write and resumed gives the same tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.batch.graph_bench import GraphBench
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, KillSchedule, plan_of_stage, run_batches
from tests.pipelines.engine.operators.stage_strategies import histories, stages
from tests.pipelines.engine.operators.test_chains_against_reference import is_valid_plan
from tests.pipelines.engine.operators.test_random_graphs import graphs

from penstock.conformance.reference import InputBatch
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state import sorted_run as runs
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths

WRITE_RUN, WRITE_ONCE = runs.write_run, BatchJournal._write_once


@contextmanager
def kill_at_file_writes(kills: KillSchedule) -> Iterator[None]:
    """Kill the process before, during and after each write of a state or journal file."""

    def write_run(table: pa.Table, path: Path) -> None:
        kills.count_step()
        path.with_name(f"{path.stem}.torn.partial").write_bytes(b"half a run")
        kills.count_step()
        WRITE_RUN(table, path)
        kills.count_step()

    def write_once(journal: BatchJournal, path: Path, data: Mapping[str, Any]) -> bool:
        kills.count_step()
        path.with_name(f"{path.name}.0.partial").write_bytes(b'{"half": ')
        kills.count_step()
        first = WRITE_ONCE(journal, path, data)
        kills.count_step()
        return first

    with (
        mock.patch.object(runs, "write_run", write_run),
        mock.patch.object(BatchJournal, "_write_once", write_once),
    ):
        yield


def make_stored_plan(stage: Stage) -> Plan:
    stage = replace(stage, name="stream", lateness=min(stage.lateness, 10**6))
    return plan_of_stage(replace(stage, sinks=(PaneLog("stream"), LatestValues("stream"))))


def read_tables(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    return {
        name: bench.rows(name) for name in [*list_owned_paths(bench.plan), *list_quarantine_paths(bench.plan)]
    }


def drop_input_end(batches: list[InputBatch]) -> list[InputBatch]:
    return [replace(batch, is_last=False) for batch in batches]


@settings(max_examples=scale_examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=stages.map(make_stored_plan) | st.sampled_from(list(PLANS.values())),
    batches=histories().map(drop_input_end),
    kills=st.lists(st.integers(1, 60), min_size=1, max_size=3),
)
def test_a_run_that_is_killed_repeatedly_gives_the_tables_of_an_undisturbed_run(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch], kills: list[int]
) -> None:
    undisturbed, killed = (Bench(plan, tmp_path_factory.mktemp(name)) for name in ("undisturbed", "killed"))
    assert_same_tables(undisturbed, killed, batches, kills)


@settings(max_examples=scale_examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=graphs().filter(is_valid_plan),
    batches=histories().map(drop_input_end),
    kills=st.lists(st.integers(1, 80), min_size=1, max_size=3),
)
def test_a_killed_run_of_any_graph_over_two_topics_gives_the_same_tables(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch], kills: list[int]
) -> None:
    undisturbed, killed = (
        GraphBench(plan, tmp_path_factory.mktemp(name)) for name in ("undisturbed", "killed")
    )
    assert_same_tables(undisturbed, killed, batches, kills)


def assert_same_tables(
    undisturbed: Bench, killed: Bench, batches: list[InputBatch], kills: list[int]
) -> None:
    """Run the batches on both, and kill hosts of one of them."""
    run_batches(undisturbed, batches=batches)
    schedule = KillSchedule(*kills)
    with kill_at_file_writes(schedule):
        run_batches(killed, schedule, batches)
    assert read_tables(killed) == read_tables(undisturbed)
