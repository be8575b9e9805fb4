"""A stream whose files do not fit together stops with a sentence, and a repair lets it resume."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, TABLES, make_batches

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import DamagedEntryError, JournalError, TableAheadError
from penstock.engine.repair.repair_plan import RepairPlan, RepairTarget, plan_repair
from penstock.engine.repair.repair_run import carry_out_repair

PLAN = PLANS["fixed"]
BATCHES = make_batches()


def feed_all(bench: Bench, batches: Sequence[InputBatch], epoch: int) -> None:
    """Feed batches to a new host. Spark numbers those with records from 0, as it does after a repair."""
    engine = bench.open(epoch)
    spark_batch = 0
    for batch in batches:
        bench.feed(engine, InputBatch(spark_batch, batch.clock, batch.records))
        spark_batch += bool(batch.records)


def run_until(folder: Path, count: int) -> Bench:
    bench = Bench(PLAN, folder)
    feed_all(bench, BATCHES[:count], 1)
    return bench


def open_target(bench: Bench) -> RepairTarget:
    return RepairTarget(bench.plan, bench.folder / "stream", bench.warehouse, {})


def plan_it(bench: Bench) -> RepairPlan:
    """Plan a repair. The bench has no checkpoint of Spark, so that this problem is left out."""
    plan = plan_repair(open_target(bench))
    assert plan.problems
    return plan


def repair(bench: Bench) -> BatchOutcome:
    plan = plan_it(bench)
    assert not plan.blockers
    return carry_out_repair(open_target(bench), plan, WriteFence(PLAN.name, 2, lambda: True), lambda: 0)


def rows_without_numbers(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables without the numbers of their batches, which a repair does not reuse."""
    return {
        table: sorted(
            ({name: value for name, value in row.items() if name != "batch_id"} for row in bench.rows(table)),
            key=repr,
        )
        for table in TABLES
    }


def journal_entry(bench: Bench, batch_id: int, kind: str) -> Path:
    return bench.folder / "stream" / "journal" / f"{batch_id:012d}.{kind}.json"


def lose_last_batch(bench: Bench) -> None:
    for kind in ("intent", "outcome"):
        journal_entry(bench, 3, kind).unlink()


def empty_last_outcome(bench: Bench) -> None:
    journal_entry(bench, 3, "outcome").write_bytes(b"")


def flip_bit_of_last_outcome(bench: Bench) -> None:
    flip_bit(journal_entry(bench, 3, "outcome"))


def empty_newest_run(bench: Bench) -> None:
    newest_run(bench).write_bytes(b"")


def remove_newest_run(bench: Bench) -> None:
    newest_run(bench).unlink()


def flip_bit_of_newest_run(bench: Bench) -> None:
    flip_bit(newest_run(bench))


def newest_run(bench: Bench) -> Path:
    return max((bench.folder / "stream" / "state" / "stream").glob("run-*.arrow"))


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "error", "problem"),
    [
        (lose_last_batch, TableAheadError, "has batch 3, and the journal of stream ends with batch 2"),
        (
            empty_last_outcome,
            DamagedEntryError,
            "outcome.json: cannot be read: it is empty, as after a power cut",
        ),
        (flip_bit_of_last_outcome, DamagedEntryError, "outcome.json: cannot be read: its checksum is wrong"),
        (empty_newest_run, DamagedEntryError, "arrow: is empty, as after a power cut"),
        (remove_newest_run, DamagedEntryError, "arrow: is missing, and batch 3 needs it"),
        (flip_bit_of_newest_run, DamagedEntryError, "arrow: its checksum is wrong"),
    ],
)
def test_a_stream_with_damage_stops_and_a_repair_lets_it_go_on(
    tmp_path: Path, damage: Callable[[Bench], None], error: type[JournalError], problem: str
) -> None:
    undisturbed, bench = run_until(tmp_path / "undisturbed", 6), run_until(tmp_path / "damaged", 4)
    damage(bench)
    with pytest.raises(error, match=problem) as stop:
        bench.open(epoch=2)
    assert "`penstock stream repair" in str(stop.value)
    outcome = repair(bench)
    assert (outcome.batch_id, outcome.kind, outcome.spark_batch) == (4, "repair", None)
    ends = dict(outcome.ends)
    remaining = [
        batch
        for batch in BATCHES[3:]
        if all(record.offset >= ends[f"records/{record.partition}"] for record in batch.records)
    ]
    feed_all(bench, remaining, epoch=3)
    assert rows_without_numbers(bench) == rows_without_numbers(undisturbed)


def test_a_repair_that_is_killed_before_its_outcome_is_planned_again(tmp_path: Path) -> None:
    bench = run_until(tmp_path, 4)
    empty_last_outcome(bench)
    first_plan = plan_it(bench)
    journal_entry(bench, 3, "outcome").unlink()
    journal_entry(bench, 3, "intent").unlink()
    assert plan_it(bench).changes == first_plan.changes
    assert repair(bench).batch_id == 4


def test_a_repair_is_blocked_when_no_batch_is_whole(tmp_path: Path) -> None:
    bench = run_until(tmp_path, 4)
    for path in (bench.folder / "stream" / "journal").glob("*.outcome.json"):
        path.write_bytes(b"")
    assert plan_it(bench).blockers == ["the journal has no batch that is whole"]


def test_a_repair_is_blocked_when_files_of_the_batch_were_removed(tmp_path: Path) -> None:
    bench = run_until(tmp_path, 4)
    lose_last_batch(bench)
    for path in (tmp_path / "warehouse" / "latest" / "stream").glob("batch-000000000001-*.parquet"):
        path.unlink()
    assert plan_it(bench).blockers == ["latest/stream cannot be restored to batch 2"]
