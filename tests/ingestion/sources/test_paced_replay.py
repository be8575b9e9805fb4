"""Replays with a rate, a speed or disorder, and their continuation from any position."""

from itertools import count
from pathlib import Path

import pytest
from tests.ingestion.source_files import (
    SENSOR_ROWS,
    check_positions,
    open_test_source,
    parse_records,
    write_json_lines,
)

from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.sources.paced_replay import ReplayPace
from penstock.ingestion.sources.source import make_replay, read_rest


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (ReplayPace(rate=100), [10, 20, 30, 40]),
        (ReplayPace(speed=1), [0, 10, 20, 30]),
        (ReplayPace(speed=0.5), [0, 20, 40, 60]),
    ],
)
def test_a_replay_sends_records_when_they_are_due(pace: ReplayPace, expected: list[int], tmp_path: Path):
    now = count()
    clock = lambda: next(now)  # noqa: E731 - a clock that ticks when it is read
    source = open_test_source(
        "json-lines", write_json_lines(tmp_path / "file", SENSOR_ROWS[:4]), clock=clock, pace=pace
    )
    due = [ticks for ticks, batch in enumerate(source.read(None)) for _ in batch.values]
    assert [abs(actual - planned) <= 3 for actual, planned in zip(due, expected, strict=True)] == [True] * 4


@pytest.mark.parametrize(
    "pace", [ReplayPace(rate=1_000), ReplayPace(speed=10), ReplayPace(speed=10, disorder=0.3, disorder_ms=50)]
)
@pytest.mark.parametrize("sent", [1, 40, 99, 100])
def test_a_paced_replay_resumes_with_the_next_due_record(pace: ReplayPace, sent: int, tmp_path: Path):
    now = count()
    clock = lambda: next(now)  # noqa: E731 - a clock that ticks when it is read
    source = open_test_source(
        "json-lines", write_json_lines(tmp_path / "file", SENSOR_ROWS[:100]), clock=clock, pace=pace
    )
    whole = [value for batch in source.replay_from(None) for value in batch.values]
    first = next(batch for batch in source.read(None) if len(batch))
    started_at = clock()
    rest = [(batch, clock() - started_at) for batch in read_rest(source, first.position, sent) if len(batch)]
    assert [value for batch, _ in rest for value in batch.values] == whole[sent:]
    if rest:
        assert rest[0][1] < 20, "records that were sent are not waited for again"
        assert 100 - sent - 20 <= rest[-1][1], "the other records are sent at their pace"


def test_disorder_is_as_declared_and_reproducible(tmp_path: Path):
    pace = ReplayPace(disorder=0.2, disorder_ms=500, seed=3)
    source = open_test_source("json-lines", write_json_lines(tmp_path / "file", SENSOR_ROWS), pace=pace)
    batches = list(source.read(None))
    times = [record["at"] for record in parse_records(batches)]
    assert sorted(times) == [row["at"] for row in SENSOR_ROWS]
    newest, delayed = 0, 0
    for time in times:
        newest = max(newest, time)
        delayed += time < newest
        assert newest - time <= 500
    assert 0.1 < delayed / len(times) < 0.2
    check_positions(source, batches)


def test_a_delay_beyond_the_time_span_of_a_batch_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = write_json_lines(tmp_path / "file", SENSOR_ROWS)
    list(
        open_test_source("json-lines", path, pace=ReplayPace(disorder=0.5, disorder_ms=7_200_000)).read(None)
    )
    (warning,) = caplog.records
    assert "records=5000, span_ms=49990, max_delay_ms=7200000" in warning.getMessage()


def test_flights_are_sent_in_order_with_their_real_delays():
    contract = load_contract("flights")
    source = open_test_source("flights", "", contract)
    batches = [batch for batch, _ in zip(source.read(None), range(3), strict=False)]
    codec = json_codec(contract)
    flights = [codec.decode(value) for batch in batches for value in batch.values]
    assert not any(batch.invalid for batch in batches)
    assert [flight.departed for flight in flights] == sorted(flight.departed for flight in flights)
    assert all(flight.departed - flight.planned == flight.dep_delay * 60_000 for flight in flights)
    assert max(flight.dep_delay for flight in flights) > 600
    replayed = [value for part in make_replay(source)(batches[1].position, 10, 100) for value in part.values]
    assert replayed == list(batches[1].values[10:110])
