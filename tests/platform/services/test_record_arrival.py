"""`penstock wait`: when the tables contain a record, and what became of it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, make_batches, run_batches

from penstock.core.errors import WaitTimeoutError
from penstock.platform.services.record_arrival import RecordAddress, RecordArrival, has_run, wait_for_record


@pytest.fixture
def stream(tmp_path: Path) -> Bench:
    bench = Bench(PLAN, tmp_path)
    run_batches(bench)
    return bench


def no_sleep(_seconds: float) -> None:
    raise AssertionError("the record is there")


def wait(
    stream: Bench,
    partition: int,
    offset: int,
    timeout_s: float = 60,
    sleep: Callable[[float], None] = no_sleep,
) -> list[RecordArrival]:
    address = RecordAddress("records", partition, offset)
    return wait_for_record([PLAN], stream.folder, stream.warehouse, address, timeout_s, sleep)


def test_each_record_has_the_fate_that_the_tables_show(stream: Bench) -> None:
    late = {(row["partition"], row["offset"]) for row in stream.rows("late/stream")}
    invalid = {(row["partition"], row["offset"]) for row in stream.rows("quarantine/records")}
    assert late
    assert invalid
    for batch in make_batches():
        for record in batch.records:
            (arrival,) = wait(stream, record.partition, record.offset)
            place = (record.partition, record.offset)
            fate = "late" if place in late else "quarantined" if place in invalid else "aggregated"
            assert (arrival.fates, arrival.batch_id) == ((fate,), batch.id)


def test_the_answer_says_by_how_much_and_why(stream: Bench) -> None:
    (late,) = stream.rows("late/stream")[:1]
    (arrival,) = wait(stream, late["partition"], late["offset"])
    assert (
        arrival.describe()
        == f"stream: late (by {late['missed_by_ms'] / 1000:g} s), in batch {late['batch_id']}"
    )
    (invalid,) = stream.rows("quarantine/records")
    (arrival,) = wait(stream, invalid["partition"], invalid["offset"])
    assert arrival.describe() == "stream: quarantined (malformed), in batch 2"


def test_a_record_that_is_not_read_yet_times_out_with_the_progress(stream: Bench) -> None:
    with pytest.raises(WaitTimeoutError) as timeout:
        wait(stream, 0, 5, timeout_s=0)
    assert str(timeout.value).startswith(
        "records/0 offset 5 is not in all tables after 0 s: stream stream has committed offsets below 5"
    )


def test_the_command_waits_until_the_stream_has_read_the_record(tmp_path: Path) -> None:
    bench, batches = Bench(PLAN, tmp_path), make_batches()
    run_batches(bench, batches=batches[:1])
    polls = 0

    def run_next_batch(_seconds: float) -> None:
        nonlocal polls
        polls += 1
        run_batches(bench, batches=batches[: polls + 1])

    (arrival,) = wait(bench, 0, 3, sleep=run_next_batch)
    assert (arrival.fates, arrival.batch_id, polls) == (("aggregated",), 3, 3)


def test_a_batch_that_a_table_lacks_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    run_batches(bench, batches=make_batches()[:1])
    log = tmp_path / "warehouse/ledger/stream/_delta_log"
    entry, elsewhere = max(log.glob("*.json")), tmp_path / "entry.json"
    shutil.move(entry, elsewhere)
    polls = 0

    def commit_third_time(_seconds: float) -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            shutil.move(elsewhere, entry)

    wait(bench, 0, 0, sleep=commit_third_time)
    assert polls == 3


def test_a_record_before_the_start_of_a_stream_is_skipped(stream: Bench) -> None:
    shutil.rmtree(Path(str(stream.warehouse)) / "ledger/stream")
    (arrival,) = wait(stream, 0, 0)
    assert arrival.describe() == "stream: not read; the stream started after this record"


def test_a_stream_without_a_batch_has_not_run(stream: Bench, tmp_path: Path) -> None:
    assert has_run(PLAN, stream.folder)
    assert not has_run(replace(PLAN, name="other"), stream.folder)
