"""Values of files, converted to records or invalid with bytes and reason."""

import json
import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ingestion.source_files import (
    SENSOR_ROWS,
    check_positions,
    open_test_source,
    parse_records,
    read_until_empty,
    write_csv,
)

from penstock.ingestion.contracts import Contract, ContractField, json_codec, load_contract
from penstock.ingestion.sources.access_log import parse_access_log_line

LINES_CONTRACT = load_contract("lines")
NUMBERS_CONTRACT = Contract(
    "numbers",
    "N.",
    (
        ContractField("must", "double", "M."),
        ContractField("may", "float", "M.", required=False),
        ContractField("many", "array<double>", "M.", required=False),
        ContractField("at", "timestamp", "A.", required=False),
    ),
)
NAN, INF = float("nan"), float("inf")


def test_lines_of_text_have_the_modification_time_of_their_file(tmp_path: Path):
    texts = [f"line {n}" if n % 7 else "" for n in range(6_000)] + ["wört", "no end"]
    path = tmp_path / "book.txt"
    path.write_text("\r\n".join(texts), encoding="utf-8", newline="")
    os.utime(path, ns=(0, 1_700_000_000_123_999_999))
    source = open_test_source("text", path, LINES_CONTRACT)
    batches = list(source.read(None))
    assert parse_records(batches) == [{"text": text, "at": 1_700_000_000_123} for text in texts]
    check_positions(source, batches)


def test_a_line_that_is_not_utf_8_keeps_its_bytes(tmp_path: Path):
    path = tmp_path / "book.txt"
    path.write_bytes(b"good\n\xff\xfe\n")
    (batch,) = open_test_source("text", path, LINES_CONTRACT).read(None)
    assert {number: error.reason for number, error in batch.invalid.items()} == {1: "invalid_utf8"}
    assert batch.values[1] == b"\xff\xfe"


def test_an_invalid_csv_row_keeps_its_bytes_and_reason(tmp_path: Path):
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
    (batch,) = open_test_source("csv", path).read(None)
    assert {index: error.reason for index, error in batch.invalid.items()} == {
        1: "wrong_type:at",
        2: "malformed",
        3: "invalid_utf8:device",
        4: "wrong_type:at",
        5: "malformed",
    }
    assert batch.values[3] == b"d,\xff,s,1,2\r\n"
    assert json.loads(batch.values[6]) == {"id": "g", "device": "d", "site": "s", "at": 2}


def test_nan_is_null_in_an_optional_field_and_invalid_in_a_required_one(tmp_path: Path):
    rows = [
        {"must": 1.5, "may": NAN, "many": [1.0, 2.0]},
        {"must": NAN, "may": 1.0, "many": None},
        {"must": -INF, "may": 1.0, "many": None},
        {"must": 1.0, "may": INF, "many": None},
        {"must": 1.0, "may": 1.0, "many": [1.0, NAN]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "file")
    (batch,) = open_test_source("parquet", tmp_path / "file", NUMBERS_CONTRACT).read(None)
    assert json.loads(batch.values[0]) == {"must": 1.5, "many": [1.0, 2.0]}
    assert {index: error.reason for index, error in batch.invalid.items()} == {
        1: "out_of_range:must",
        2: "out_of_range:must",
        3: "out_of_range:may",
        4: "out_of_range:many",
    }
    (tmp_path / "csv").write_text("must,may\n1,\nnan,1\n1,inf\n2,NaN\n")
    (batch,) = open_test_source("csv", tmp_path / "csv", NUMBERS_CONTRACT).read(None)
    assert sorted(batch.invalid) == [1, 2]
    assert [json.loads(batch.values[index]) for index in (0, 3)] == [{"must": 1.0}, {"must": 2.0}]


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
def test_timestamps_in_text_are_numbers_or_iso_8601(text: str, at: int, tmp_path: Path):
    (tmp_path / "csv").write_text(f"must,at\n1,{text}\n")
    (batch,) = open_test_source("csv", tmp_path / "csv", NUMBERS_CONTRACT).read(None)
    assert not batch.invalid
    assert json.loads(batch.values[0])["at"] == at


def test_a_parquet_date_is_the_start_of_its_day(tmp_path: Path):
    pq.write_table(pa.Table.from_pylist([{"must": 1.0, "at": date(2023, 11, 14)}]), tmp_path / "file")
    (batch,) = open_test_source("parquet", tmp_path / "file", NUMBERS_CONTRACT).read(None)
    assert json.loads(batch.values[0])["at"] == 1_699_920_000_000


def test_a_row_too_large_with_its_key_is_invalid(tmp_path: Path):
    rows = [SENSOR_ROWS[0] | {"device": "d" * size} for size in (400_000, 500_000)]
    (batch,) = open_test_source("csv", write_csv(tmp_path / "file", rows)).read(None)
    assert {index: error.reason for index, error in batch.invalid.items()} == {1: "too_large"}


def test_a_line_longer_than_any_record_is_truncated(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 40_000_000 + b'\n{"id":1}\n')
    batches = open_test_source("json-lines", path).read(None)
    assert [len(value) for batch in batches for value in batch.values] == [16_777_216, 8]


def test_an_access_log_becomes_records(tmp_path: Path):
    path = tmp_path / "access.log"
    path.write_bytes(
        b'10.0.0.1 - ada [10/Oct/2025:13:55:36 -0700] "GET /a?b=\\"c\\" HTTP/1.1" 200 2326 "-" "Mozilla/5.0"\n'
        b'10.0.0.2 - - [10/Oct/2025:20:55:37 +0000] "POST /x HTTP/1.0" 404 -\n'
        b"no line of a log\n"
        b'10.0.0.2 - - [99/Oct/2025:20:55:37 +0000] "GET / HTTP/1.0" 200 1\n'
    )
    (batch,) = read_until_empty(open_test_source("access-log", path, load_contract("access-log")).read(None))
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
    assert {index: error.reason for index, error in batch.invalid.items()} == {2: "malformed", 3: "malformed"}
    assert parse_access_log_line(b"\xff").reason == "invalid_utf8"
