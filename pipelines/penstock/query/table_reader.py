"""A table of results for Python: `penstock.open` returns one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.storage.arrow_delta_table import storage_uri
from penstock.query.errors import MissingLibraryError, QueryError
from penstock.query.table_changes import BatchChanges, WatchOptions, open_log, read_changes, watch_changes
from penstock.query.table_rows import list_columns, quote_name, read_table_rows
from penstock.query.table_snapshots import TableSnapshot

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


EXTRAS = ("duckdb",)
"""Libraries that the package installs only as an extra of that name."""


@dataclass(frozen=True)
class TableReader:
    """One version of a table. `columns=` and `where=`, a condition in SQL, restrict what is read.

    Not promised: that the version stays readable after the retention of maintenance. Open the table again for newer
    rows.
    """

    warehouse: StoragePath
    snapshot: TableSnapshot

    @property
    def version(self) -> int:
        """The version of the Delta table."""
        return self.snapshot.table.version()

    @property
    def batch_id(self) -> int | None:
        """The newest batch in it; None if several streams write the table."""
        return self.snapshot.batch_id

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list_columns(self.snapshot)

    def to_arrow(self, columns: Sequence[str] = (), where: str = "") -> pa.Table:
        """Return the rows as an Arrow table."""
        return read_table_rows(self.snapshot, columns, where)

    def to_polars(self, columns: Sequence[str] = (), where: str = "") -> "pl.DataFrame":
        """Return the rows as a Polars data frame."""
        polars = _import_library("polars", "to_polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow(columns, where))
        return frame

    def to_pandas(self, columns: Sequence[str] = (), where: str = "") -> "pd.DataFrame":
        """Return the rows as a pandas data frame."""
        _import_library("pandas", "to_pandas")
        frame: pd.DataFrame = self.to_arrow(columns, where).to_pandas()
        return frame

    def to_duckdb(
        self,
        columns: Sequence[str] = (),
        where: str = "",
        connection: "duckdb.DuckDBPyConnection | None" = None,
    ) -> "duckdb.DuckDBPyRelation":
        """Return the rows as a relation of DuckDB; a connection of your own can join it with other relations."""
        library = _import_library("duckdb", "to_duckdb")
        target = library if connection is None else connection
        relation: duckdb.DuckDBPyRelation = target.from_arrow(self.to_arrow(columns, where))
        return relation

    def spark(
        self, session: "SparkSession | None" = None, columns: Sequence[str] = (), where: str = ""
    ) -> "DataFrame":
        """Return the rows as a data frame of Spark, which reads them when it needs them.

        The session is the active one unless you pass another; it needs Delta's extension. The condition is in
        Spark's SQL.
        """
        sql = _import_library("pyspark.sql", "spark")
        active: SparkSession | None = session or sql.SparkSession.getActiveSession()
        if active is None:
            raise QueryError("spark() needs a session. Start one, or pass it: table.spark(session)")
        uri = str(storage_uri(self.warehouse / self.snapshot.path))
        frame = active.read.format("delta").option("versionAsOf", self.version).load(uri)
        frame = frame.where(where) if where else frame
        return frame.select(*columns) if columns else frame

    def changes(self, since: int, columns: Sequence[str] = (), where: str = "") -> pa.Table:
        """Return the rows that batches after `since` appended to the log of the table, in order.

        Raises QueryError if the table has no log.
        """
        return read_changes(open_log(self.warehouse, self.snapshot), since, columns, where)

    def watch(
        self,
        since: int | None = None,
        columns: Sequence[str] = (),
        where: str = "",
        options: WatchOptions | None = None,
    ) -> Iterator[BatchChanges]:
        """Yield the changes of each batch after `since`, then of each new one. None starts with the next batch.

        Not promised: a batch without rows that meet the condition; a log whose stream was replayed meanwhile. Its
        rows are replaced: open it again.
        """
        log = open_log(self.warehouse, self.snapshot)
        return watch_changes(log, since, columns, where, options or WatchOptions())

    def __repr__(self) -> str:
        """Return the table, its batch, and its columns."""
        return f"<{self.snapshot.describe()}: {', '.join(map(quote_name, self.columns))}>"


def _import_library(name: str, method: str) -> Any:
    """Import a library on first use. Raises MissingLibraryError with the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        package = f"'penstock[{library}]'" if library in EXTRAS else library
        raise MissingLibraryError(
            f"{method}() needs the library {library}. Install it: pip install {package}"
        ) from error
