"""A batch that is processed in remote parts gives the same tables as one on the driver, and so does any mixture."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from tests.examples import scale_examples
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, KillSchedule, make_batches, run_batches

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, RemotePartials, account_partitions
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.part_execution import PartResult, PartTask, decode_part, encode_part, split_refused
from penstock.engine.batch.placement import Placement
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.hash_parts import PART_COUNT
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths


@dataclass
class PartRunner:
    """Processes the parts one after the other, after a round trip as to other processes."""

    batch_ids: list[int] = field(default_factory=list)

    def process_parts(self, task: PartTask, partials: pa.Table | RemotePartials) -> Iterator[PartResult]:
        assert isinstance(partials, pa.Table)
        decoded_task: PartTask = cloudpickle.loads(cloudpickle.dumps(task))
        part_of = decoded_task.assign_parts(partials)
        self.batch_ids.append(task.batch_id)
        for part in range(PART_COUNT):
            yield decode_part(
                encode_part(decoded_task.process_part(part, partials.filter(pa.array(part_of == part))))
            )


@dataclass(frozen=True)
class AlternatingPlacement(Placement):
    """Processes these batches remotely, counted from the start of a host."""

    is_remote: tuple[bool, ...] = ()
    calls: list[None] = field(default_factory=list)

    def fits_on_driver(self, stage: CompiledStage, partials: int, due: int, weight: int = 0) -> bool:
        self.calls.append(None)
        return not self.is_remote[(len(self.calls) - 1) % len(self.is_remote)]


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(sorted(PLANS)),
    is_remote=st.lists(st.booleans(), min_size=1, max_size=6),
    steps=st.sampled_from([-1, 7, 19]),
)
def test_changing_placements_give_the_same_tables(
    tmp_path_factory: pytest.TempPathFactory, name: str, is_remote: list[bool], steps: int
) -> None:
    on_driver = Bench(PLANS[name], tmp_path_factory.mktemp("here"))
    run_batches(on_driver)
    part_runner = PartRunner()
    placement = AlternatingPlacement(0, part_runner, tuple(is_remote))
    alternating = Bench(PLANS[name], tmp_path_factory.mktemp("moving"), placement=placement)
    run_batches(alternating, KillSchedule(steps))
    for table in {*list_owned_paths(PLANS[name]), *list_quarantine_paths(PLANS[name])}:
        assert alternating.rows(table) == on_driver.rows(table), table
    assert bool(part_runner.batch_ids) == any(
        is_remote[: len(make_batches()) * len(PLANS[name].source_stages)]
    )


def test_a_batch_that_fits_is_processed_on_the_driver(tmp_path: Path) -> None:
    part_runner = PartRunner()
    bench = Bench(PLANS["fixed"], tmp_path, placement=Placement(1_500, part_runner))
    run_batches(bench)
    outcomes = list(BatchJournal(tmp_path / "stream" / "journal").read_outcomes())
    placements = {outcome.batch_id: outcome.placement for outcome in outcomes}
    assert [
        batch for batch, placement in placements.items() if placement == "executors"
    ] == part_runner.batch_ids
    assert set(placements.values()) == {"driver", "executors"}


def test_the_size_of_long_keys_counts(tmp_path: Path) -> None:
    part_runner = PartRunner()
    bench = Bench(PLANS["fixed"], tmp_path, placement=Placement(100_000, part_runner))
    engine = bench.open()
    for offset, length in enumerate([1, 40_000, 60_000]):
        fields = {"key": "k" * length, "at": 3, "value": 1, "word": None}
        bench.feed(engine, InputBatch(offset, 100 + offset, (InputRecord("records", 0, offset, fields),)))
    assert part_runner.batch_ids == [2]


def test_late_records_of_a_partition_with_many_partials_are_counted_once() -> None:
    """Partials that are on the driver have a row per key and window, and a batch of them may still run in parts."""
    columns = [["t"] * 4, [0, 0, 0, 1], [None, None, "quarantined", None], [10, 20, 1, 5], [7, 9, None, 8]]
    partials = pa.table(columns, schema=ACCOUNT_SCHEMA)
    table, is_late = split_refused(partials, {("t", 0): 4})
    ranges = [OffsetRange("t", 0, 0, 31), OffsetRange("t", 1, 0, 5)]
    first, second = account_partitions(ranges, table, is_late)
    assert (first.read, first.accepted, first.late, first.quarantined) == (31, 26, 4, 1)
    assert (second.read, second.accepted, second.late, second.quarantined) == (5, 5, 0, 0)
