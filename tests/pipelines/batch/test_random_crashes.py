"""Random plans over random histories, killed at any write: a run that is resumed ends as one that was not."""

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
from tests.examples import examples
from tests.pipelines.batch.graphs import GraphBench
from tests.pipelines.batch.stored import Bench
from tests.pipelines.batch.test_crashes import PLANS, Fuse, plan_over, run
from tests.pipelines.fold.strategies import histories, stages
from tests.pipelines.fold.test_chains_against_reference import sound
from tests.pipelines.fold.test_free_graphs import graphs

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.plan import LatestValues, PaneLog, Plan, Stage
from penstock.pipelines.reference import Batch
from penstock.pipelines.state import run as runs
from penstock.pipelines.tables.places import own_tables, quarantines

WRITE_RUN, WRITE_ONCE = runs.write, Journal._write_once


@contextmanager
def burning_files(fuse: Fuse) -> Iterator[None]:
    """Let the process end before a file of the state or the journal is written, half-way, and when it is there."""

    def write_run(table: pa.Table, path: Path) -> None:
        fuse.burn()
        path.with_name(f"{path.stem}.torn.partial").write_bytes(b"half a run")
        fuse.burn()
        WRITE_RUN(table, path)
        fuse.burn()

    def write_once(journal: Journal, path: Path, data: Mapping[str, Any]) -> bool:
        fuse.burn()
        path.with_name(f"{path.name}.0.partial").write_bytes(b'{"half": ')
        fuse.burn()
        first = WRITE_ONCE(journal, path, data)
        fuse.burn()
        return first

    with mock.patch.object(runs, "write", write_run), mock.patch.object(Journal, "_write_once", write_once):
        yield


def in_tables(stage: Stage) -> Plan:
    stage = replace(stage, name="stream", lateness=min(stage.lateness, 10**6))
    return plan_over(replace(stage, sinks=(PaneLog("stream"), LatestValues("stream"))))


def tables_of(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    return {name: bench.rows(name) for name in [*own_tables(bench.plan), *quarantines(bench.plan)]}


def without_ends(batches: list[Batch]) -> list[Batch]:
    return [replace(batch, ends=False) for batch in batches]


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=stages.map(in_tables) | st.sampled_from(list(PLANS.values())),
    batches=histories().map(without_ends),
    kills=st.lists(st.integers(1, 60), min_size=1, max_size=3),
)
def test_a_run_that_is_killed_again_and_again_ends_with_the_tables_of_one_that_was_not(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[Batch], kills: list[int]
) -> None:
    calm, killed = (Bench(plan, tmp_path_factory.mktemp(name)) for name in ("calm", "killed"))
    assert_ends_alike(calm, killed, batches, kills)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=graphs().filter(sound),
    batches=histories().map(without_ends),
    kills=st.lists(st.integers(1, 80), min_size=1, max_size=3),
)
def test_so_does_a_run_of_any_graph_of_stages_over_two_topics(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[Batch], kills: list[int]
) -> None:
    calm, killed = (GraphBench(plan, tmp_path_factory.mktemp(name)) for name in ("calm", "killed"))
    assert_ends_alike(calm, killed, batches, kills)


def assert_ends_alike(calm: Bench, killed: Bench, batches: list[Batch], kills: list[int]) -> None:
    """Run the batches in both, and kill hosts of one of them."""
    run(calm, Fuse(-1), batches)
    fuse = Fuse(*kills)
    with burning_files(fuse):
        run(killed, fuse, batches)
    assert tables_of(killed) == tables_of(calm)
