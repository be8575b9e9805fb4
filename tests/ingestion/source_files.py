"""Files of records for tests of sources, and checks of the batches that are read."""

import csv
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.sources import RecordSource
from penstock.ingestion.sources.paced_replay import ReplayPace
from penstock.ingestion.sources.source import make_replay, read_rest
from penstock.ingestion.sources.source_discovery import find_source_kind, open_source

SENSORS_CONTRACT = load_contract("sensors")
SENSOR_ROWS = [
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


def open_test_source(
    kind: str,
    location: object,
    contract: Contract = SENSORS_CONTRACT,
    clock: Callable[[], int] = int,
    *,
    index: Path | None = None,
    pace: ReplayPace | None = None,
    **options: Any,
) -> RecordSource:
    option = find_source_kind(kind).location
    options |= ({option: str(location)} if option else {}) | to_pace_options(pace or ReplayPace())
    return open_source(kind, contract, create_record_format(contract), clock, options, index)


def to_pace_options(pace: ReplayPace) -> dict[str, Any]:
    options = {
        "speed": pace.speed,
        "rate": pace.rate,
        "disorder": pace.disorder or None,
        "max_delay": pace.disorder_ms or None,
        "seed": pace.seed if pace.disorder else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def parse_records(batches: list[SourceBatch]) -> list[dict[str, Any]]:
    return [json.loads(value) for batch in batches for value in batch.values]


def parse_rows(batches: list[SourceBatch]) -> list[dict[str, Any]]:
    return [{name: record.get(name) for name in SENSOR_ROWS[0]} for record in parse_records(batches)]


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, SENSOR_ROWS[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    dated = [row | {"at": datetime.fromtimestamp(row["at"] / 1_000, UTC)} for row in rows]
    pq.write_table(pa.Table.from_pylist(dated), path, row_group_size=3_000)
    return path


FILE_WRITERS = {"json-lines": write_json_lines, "csv": write_csv, "parquet": write_parquet}


def check_positions(source: RecordSource, batches: list[SourceBatch]) -> None:
    values = [value for batch in batches for value in batch.values]
    replay, start = make_replay(source), 0
    for batch in batches:
        middle = len(batch) // 2
        replayed = [value for part in replay(batch.position, middle, len(batch)) for value in part.values]
        assert replayed == values[start + middle : start + middle + len(batch)]
        rest = [value for part in read_rest(source, batch.position, len(batch)) for value in part.values]
        assert rest == values[start + len(batch) :]
        start += len(batch)


def read_until_empty(stream: Iterator[SourceBatch]) -> list[SourceBatch]:
    batches = []
    for batch in stream:
        if not len(batch):
            return batches
        batches.append(batch)
    return batches
