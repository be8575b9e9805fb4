"""Each source gives what is there, and from a position of its own the same again, byte for byte."""

import csv
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.ingestion.contracts import Contract, Field, json_codec, load_contract
from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.producer import Batch, format_of
from penstock.ingestion.sources import Source
from penstock.ingestion.sources.access_log import parsed
from penstock.ingestion.sources.opening import SourceOptions, open_source, source_kinds
from penstock.ingestion.sources.replay import Pace
from penstock.ingestion.sources.source import replay_of, rest_of

SENSORS, LINES = load_contract("sensors"), load_contract("lines")
ROWS = [
    {
        "id": f"r{n}",
        "device": f"d{n % 7}",
        "site": "s,\n1" if n % 50 == 0 else "s",
        "at": 1_700_000_000_000 + n * 10,
        "temperature": n / 4,
        "humidity": None if n % 3 else 50.5,
    }
    for n in range(12_000)
]


def opened(
    kind: str, place: object, contract: Contract = SENSORS, clock: Callable[[], int] = int, **options: Any
):
    given = SourceOptions(place=str(place), **options)
    return open_source(kind, contract, format_of(contract), clock, given)


def records(batches: list[Batch]) -> list[dict[str, Any]]:
    return [json.loads(value) for batch in batches for value in batch.values]


def as_rows(batches: list[Batch]) -> list[dict[str, Any]]:
    return [{name: found.get(name) for name in ROWS[0]} for found in records(batches)]


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    dated = [row | {"at": datetime.fromtimestamp(row["at"] / 1_000, UTC)} for row in rows]
    pq.write_table(pa.Table.from_pylist(dated), path, row_group_size=3_000)
    return path


WRITERS = {"json-lines": write_json_lines, "csv": write_csv, "parquet": write_parquet}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_gives_its_records_and_the_same_again_from_any_position(kind: str, tmp_path: Path):
    source = opened(kind, WRITERS[kind](tmp_path / "file", ROWS))
    batches = list(source.read(None))
    assert as_rows(batches) == ROWS
    check_positions(source, batches)


def check_positions(source: Source, batches: list[Batch]) -> None:
    values = [value for batch in batches for value in batch.values]
    replay, place = replay_of(source), 0
    for batch in batches:
        middle = len(batch) // 2
        again = [value for part in replay(batch.position, middle, len(batch)) for value in part.values]
        assert again == values[place + middle : place + middle + len(batch)]
        rest = [value for part in rest_of(source, batch.position, len(batch)) for value in part.values]
        assert rest == values[place + len(batch) :]
        place += len(batch)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_folder_takes_up_new_files_once_each_and_survives_a_restart(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    WRITERS[kind](folder / "z", ROWS[:3_000])
    source = opened(kind, folder, follow=True, index=index)
    stream = source.read(None)
    first = until_nothing(stream)
    assert as_rows(first) == ROWS[:3_000]
    WRITERS[kind](folder / "a", ROWS[3_000:4_000])
    (folder / ".hidden").write_text("no record")
    (folder / "b.tmp").write_text("no record")
    second = until_nothing(stream)
    assert as_rows(second) == ROWS[3_000:4_000]
    WRITERS[kind](folder / "0", ROWS[4_000:5_000])
    again = opened(kind, folder, follow=True, index=index)
    rest = until_nothing(rest_of(again, second[-1].position, len(second[-1])))
    assert as_rows(rest) == ROWS[4_000:5_000]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_batch_holds_no_more_than_some_megabytes(kind: str, tmp_path: Path):
    rows = [row | {"site": f"{n}" * 200_000} for n, row in enumerate(ROWS[:60])]
    source = opened(kind, WRITERS[kind](tmp_path / "file", rows))
    batches = list(source.read(None))
    assert max(sum(map(len, batch.values)) for batch in batches) < 10_000_000
    assert as_rows(batches) == rows
    check_positions(source, batches)


@pytest.mark.parametrize("kind", WRITERS)
def test_after_a_batch_comes_what_follows_it_also_when_its_file_is_gone(kind: str, tmp_path: Path):
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    WRITERS[kind](folder / "a", ROWS[:6_000])
    first, second = until_nothing(opened(kind, folder, follow=True, index=index).read(None))[-2:]
    again = opened(kind, folder, follow=True, index=index)
    assert as_rows(until_nothing(rest_of(again, first.after, 0))) == as_rows([second])
    (folder / "a").unlink()
    WRITERS[kind](folder / "b", ROWS[7_000:8_000])
    again = opened(kind, folder, follow=True, index=index)
    assert as_rows(until_nothing(rest_of(again, second.after, 0))) == ROWS[7_000:8_000]
    with pytest.raises(SourceError, match="bring it back"):
        next(rest_of(again, first.after, 0))


@pytest.mark.parametrize("kind", WRITERS)
def test_another_file_in_the_place_of_the_one_that_was_read_is_refused(kind: str, tmp_path: Path):
    path = WRITERS[kind](tmp_path / "file", ROWS[:6_000])
    source = opened(kind, path)
    batch = next(source.read(None))
    WRITERS[kind](path, ROWS[6_000:])
    for position in (batch.position, batch.after):
        with pytest.raises(SourceError, match="another file than the one that was read"):
            next(rest_of(source, position, 0))


def test_lines_that_were_added_to_a_file_are_what_follows(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:10])
    source = opened("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, ROWS[:25])
    assert as_rows(list(rest_of(source, batch.after, 0))) == ROWS[10:25]
    write_json_lines(path, ROWS[:5])
    with pytest.raises(SourceError, match=r"shorter than it was|another file"):
        list(rest_of(source, batch.after, 0))


def test_a_place_is_the_same_however_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in").mkdir()
    path = write_json_lines(tmp_path / "in" / "file", ROWS[:1])
    monkeypatch.chdir(tmp_path / "in")
    assert opened("json-lines", "file").description == opened("json-lines", path).description
    monkeypatch.chdir(tmp_path)
    assert opened("json-lines", "in/file").description == opened("json-lines", path).description


def test_text_is_of_the_time_of_its_file_and_the_same_again_from_any_position(tmp_path: Path):
    texts = [f"line {n}" if n % 7 else "" for n in range(6_000)] + ["wört", "no end"]
    path = tmp_path / "book.txt"
    path.write_text("\r\n".join(texts), encoding="utf-8", newline="")
    os.utime(path, ns=(0, 1_700_000_000_123_999_999))
    source = opened("text", path, LINES)
    batches = list(source.read(None))
    assert records(batches) == [{"text": text, "at": 1_700_000_000_123} for text in texts]
    check_positions(source, batches)


def test_a_line_of_text_that_is_no_utf_8_keeps_its_bytes(tmp_path: Path):
    path = tmp_path / "book.txt"
    path.write_bytes(b"good\n\xff\xfe\n")
    (batch,) = opened("text", path, LINES).read(None)
    assert {number: error.reason for number, error in batch.broken.items()} == {1: "invalid utf-8"}
    assert batch.values[1] == b"\xff\xfe"


def until_nothing(stream: Iterator[Batch]) -> list[Batch]:
    found = []
    for batch in stream:
        if not len(batch):
            return found
        found.append(batch)
    return found


def test_a_broken_row_of_csv_keeps_its_bytes_and_its_reason(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(
        b"id,device,site,at,temperature\r\n"
        b"a,d,s,1,2.5\r\n"
        b"b,d,s,noon,2.5\r\n"
        b"c,d,s,1\r\n"
        b"d,\xff,s,1,2\r\n"
        b"e,d,s,,1\r\n"
        b'f,"d"x,s,1,1\r\n'
        b"g,d,s,2,\r\n"
    )
    (batch,) = opened("csv", path).read(None)
    assert {place: error.reason for place, error in batch.broken.items()} == {
        1: "wrong type",
        2: "malformed",
        3: "invalid utf-8",
        4: "wrong type",
        5: "malformed",
    }
    assert batch.values[3] == b"d,\xff,s,1,2\r\n"
    assert json.loads(batch.values[6]) == {"id": "g", "device": "d", "site": "s", "at": 2}


NUMBERS = Contract(
    "numbers",
    "N.",
    (
        Field("must", "double", "M."),
        Field("may", "float", "M.", required=False),
        Field("many", "array<double>", "M.", required=False),
        Field("at", "timestamp", "A.", required=False),
    ),
)
NAN, INF = float("nan"), float("inf")


def test_what_is_no_number_is_absent_where_it_may_be_and_else_broken(tmp_path: Path):
    rows = [
        {"must": 1.5, "may": NAN, "many": [1.0, 2.0]},
        {"must": NAN, "may": 1.0, "many": None},
        {"must": -INF, "may": 1.0, "many": None},
        {"must": 1.0, "may": INF, "many": None},
        {"must": 1.0, "may": 1.0, "many": [1.0, NAN]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "file")
    (batch,) = opened("parquet", tmp_path / "file", NUMBERS).read(None)
    assert json.loads(batch.values[0]) == {"must": 1.5, "many": [1.0, 2.0]}
    assert {place: error.reason for place, error in batch.broken.items()} == dict.fromkeys(
        range(1, 5), "wrong type"
    )
    (tmp_path / "csv").write_text("must,may\n1,\nnan,1\n1,inf\n2,NaN\n")
    (batch,) = opened("csv", tmp_path / "csv", NUMBERS).read(None)
    assert sorted(batch.broken) == [1, 2]
    assert [json.loads(batch.values[place]) for place in (0, 3)] == [{"must": 1.0}, {"must": 2.0}]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("-5", -5),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14 23:13:20.123+01:00", 1_700_000_000_123),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("0001-01-01T00:00:00", -62_135_596_800_000),
    ],
)
def test_times_in_text_are_numbers_or_as_the_standard_writes_them(text: str, at: int, tmp_path: Path):
    (tmp_path / "csv").write_text(f"must,at\n1,{text}\n")
    (batch,) = opened("csv", tmp_path / "csv", NUMBERS).read(None)
    assert not batch.broken
    assert json.loads(batch.values[0])["at"] == at


def test_a_date_of_parquet_is_the_beginning_of_its_day(tmp_path: Path):
    pq.write_table(pa.Table.from_pylist([{"must": 1.0, "at": date(2023, 11, 14)}]), tmp_path / "file")
    (batch,) = opened("parquet", tmp_path / "file", NUMBERS).read(None)
    assert json.loads(batch.values[0])["at"] == 1_699_920_000_000


def test_a_row_that_is_too_large_with_its_key_is_told(tmp_path: Path):
    rows = [ROWS[0] | {"device": "d" * size} for size in (400_000, 500_000)]
    (batch,) = opened("csv", write_csv(tmp_path / "file", rows)).read(None)
    assert {place: error.reason for place, error in batch.broken.items()} == {1: "too large"}


def test_a_line_longer_than_any_record_is_cut_and_the_next_one_is_read(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 40_000_000 + b'\n{"id":1}\n')
    batches = opened("json-lines", path).read(None)
    assert [len(value) for batch in batches for value in batch.values] == [16_777_216, 8]


def test_what_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(SourceError, match="there is no"):
        opened("csv", tmp_path / "missing")
    with pytest.raises(SourceError, match="index"):
        opened("csv", tmp_path)
    with pytest.raises(SourceError, match="sensors"):
        opened("sensor", "")
    assert {"csv", "http", "nexmark-bids", "sse"} < set(source_kinds())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pace": Pace(speed=2, rate=5)}, "a speed or at a rate"),
        ({"pace": Pace(disorder=0.5)}, "say also by how much"),
        ({"pace": Pace(disorder_ms=50)}, "say also which share"),
        ({"replay_by": "at"}, "without a speed or disorder"),
        ({"replay_by": "at", "pace": Pace(rate=5)}, "without a speed or disorder"),
        ({"follow": True}, "is a file, and a folder is what is followed"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, Any], said: str, tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:1])
    with pytest.raises(SourceOptionsError, match=said):
        opened("json-lines", path, **options)


def test_disorder_that_is_longer_than_what_is_read_at_once_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = write_json_lines(tmp_path / "file", ROWS)
    list(opened("json-lines", path, pace=Pace(disorder=0.5, disorder_ms=7_200_000)).read(None))
    (told,) = caplog.records
    assert "5000 records that are read at once span 49990 ms" in told.getMessage()


def test_a_file_that_became_shorter_is_refused(tmp_path: Path):
    path = write_json_lines(tmp_path / "file", ROWS[:100])
    source = opened("json-lines", path)
    (batch,) = source.read(None)
    write_json_lines(path, ROWS[:50])
    with pytest.raises(SourceError, match="shorter"):
        list(rest_of(source, batch.position, 100))


def test_a_log_is_followed_through_rotation_and_growth(tmp_path: Path):
    path = tmp_path / "app.log"
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":')
    source = opened("log", path)
    stream = source.read(None)
    assert records(until_nothing(stream)) == [{"n": 1}, {"n": 2}]
    with path.open("ab") as file:
        file.write(b"3}\n")
    third = until_nothing(stream)
    assert records(third) == [{"n": 3}]
    path.rename(tmp_path / "app.log.1")
    with (tmp_path / "app.log.1").open("ab") as file:
        file.write(b'{"n":4}\n')
    path.write_bytes(b'{"n":5}\n')
    assert records(until_nothing(stream)) == [{"n": 4}, {"n": 5}]
    again = opened("log", path)
    assert records(until_nothing(rest_of(again, third[0].position, 1))) == [{"n": 4}, {"n": 5}]
    (tmp_path / "app.log.1").unlink()
    with pytest.raises(SourceError, match="rotated"):
        next(again.read(third[0].position))


def test_a_log_that_is_cut_in_place_is_read_from_its_start(tmp_path: Path):
    path = tmp_path / "app.log"
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    stream = opened("log", path).read(None)
    until_nothing(stream)
    path.write_bytes(b'{"n":3}\n')
    assert records(until_nothing(stream)) == [{"n": 3}]


def test_an_access_log_becomes_records(tmp_path: Path):
    path = tmp_path / "access.log"
    path.write_bytes(
        b'10.0.0.1 - ada [10/Oct/2025:13:55:36 -0700] "GET /a?b=\\"c\\" HTTP/1.1" 200 2326 "-" "Mozilla/5.0"\n'
        b'10.0.0.2 - - [10/Oct/2025:20:55:37 +0000] "POST /x HTTP/1.0" 404 -\n'
        b"no line of a log\n"
        b'10.0.0.2 - - [99/Oct/2025:20:55:37 +0000] "GET / HTTP/1.0" 200 1\n'
    )
    (batch,) = until_nothing(opened("access-log", path, load_contract("access-log")).read(None))
    codec = json_codec(load_contract("access-log"))
    first, second = (codec.decode(value) for value in batch.values[:2])
    assert (first.user, first.path, first.status, first.bytes, first.referer) == (
        "ada",
        '/a?b=\\"c\\"',
        200,
        2326,
        None,
    )
    assert first.at + 1_000 == second.at == 1_760_129_737_000
    assert (second.user, second.bytes, second.protocol) == (None, None, "HTTP/1.0")
    assert {place: error.reason for place, error in batch.broken.items()} == {2: "malformed", 3: "malformed"}
    assert parsed(b"\xff").reason == "invalid utf-8"


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (Pace(rate=100), [10, 20, 30, 40]),
        (Pace(speed=1), [0, 10, 20, 30]),
        (Pace(speed=0.5), [0, 20, 40, 60]),
    ],
)
def test_a_replay_sends_records_when_they_are_due(pace: Pace, expected: list[int], tmp_path: Path):
    now = count()
    clock = lambda: next(now)  # noqa: E731 - a clock that ticks when it is looked at
    source = opened("json-lines", write_json_lines(tmp_path / "file", ROWS[:4]), clock=clock, pace=pace)
    due = [ticks for ticks, batch in enumerate(source.read(None)) for _ in batch.values]
    assert [abs(found - wanted) <= 3 for found, wanted in zip(due, expected, strict=True)] == [True] * 4


@pytest.mark.parametrize(
    "pace", [Pace(rate=1_000), Pace(speed=10), Pace(speed=10, disorder=0.3, disorder_ms=50)]
)
@pytest.mark.parametrize("sent", [1, 40, 99, 100])
def test_a_paced_replay_goes_on_where_it_was_with_what_is_due_next(pace: Pace, sent: int, tmp_path: Path):
    now = count()
    clock = lambda: next(now)  # noqa: E731 - a clock that ticks when it is looked at
    source = opened("json-lines", write_json_lines(tmp_path / "file", ROWS[:100]), clock=clock, pace=pace)
    whole = [value for batch in source.repeat(None) for value in batch.values]
    first = next(batch for batch in source.read(None) if len(batch))
    began = clock()
    rest = [(batch, clock() - began) for batch in rest_of(source, first.position, sent) if len(batch)]
    assert [value for batch, _ in rest for value in batch.values] == whole[sent:]
    if rest:
        assert rest[0][1] < 20, "what was sent is not waited for a second time"
        assert 100 - sent - 20 <= rest[-1][1], "and what was not is sent at its pace"


def test_disorder_is_as_declared_and_the_same_again(tmp_path: Path):
    pace = Pace(disorder=0.2, disorder_ms=500, seed=3)
    source = opened("json-lines", write_json_lines(tmp_path / "file", ROWS), pace=pace)
    batches = list(source.read(None))
    times = [record["at"] for record in records(batches)]
    assert sorted(times) == [row["at"] for row in ROWS]
    newest, held = 0, 0
    for time in times:
        newest = max(newest, time)
        held += time < newest
        assert newest - time <= 500
    assert 0.1 < held / len(times) < 0.2
    check_positions(source, batches)


def test_flights_leave_in_order_and_are_late_as_they_were():
    contract = load_contract("flights")
    source = opened("flights", "", contract)
    batches = [batch for batch, _ in zip(source.read(None), range(3), strict=False)]
    codec = json_codec(contract)
    found = [codec.decode(value) for batch in batches for value in batch.values]
    assert not any(batch.broken for batch in batches)
    assert [flight.departed for flight in found] == sorted(flight.departed for flight in found)
    assert all(flight.departed - flight.planned == flight.dep_delay * 60_000 for flight in found)
    assert max(flight.dep_delay for flight in found) > 600
    check_again = [value for part in replay_of(source)(batches[1].position, 10, 100) for value in part.values]
    assert check_again == list(batches[1].values[10:110])
