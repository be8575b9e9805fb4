"""How a stream parses the records of an input, by their format."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from penstock.engine.plan.sources import Column, PlanSource
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import RecordFormat
from penstock.ingestion.registry import ReadableSchemas

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

WriterSchemas: TypeAlias = Mapping[str, ReadableSchemas]
"""The writer schemas of a batch, by topic."""

NO_VALUE = "no_value"
"""The reason of a record without a value, where it means nothing."""
IGNORED = "ignored"
"""The mark of a valid record that its contract does not read. It is counted as filtered."""
RAW_COLUMN = "_raw"
"""The column of a record's value."""


def find_source_format(source: PlanSource) -> RecordFormat:
    """Return the format of an input's records."""
    return find_record_format(source.encoding)


class RecordParser(ABC):
    """Builds the SQL for records of one input."""

    def __init__(self, source: PlanSource, writer_schemas: WriterSchemas) -> None:
        self._source = source
        self._writer_schemas = writer_schemas

    @property
    def needs_judge(self) -> bool:
        """Whether the plan must contain the judge."""
        return False

    @property
    def empty_reason(self) -> str:
        """Why a record without a value is excluded."""
        return IGNORED if find_source_format(self._source).ignores_tombstones else NO_VALUE

    def early_columns(
        self, _session: "SparkSession", _restrict: Callable[[str], str]
    ) -> "Mapping[str, SparkColumn]":
        """Return the columns that `parse_sql` needs beside those of the topic, by name.

        `restrict` returns SQL that is null for records of other inputs.
        """
        return {}

    @property
    def flag_columns(self) -> Sequence[str]:
        """Columns, with their names, that the clauses of the parser need beside the record."""
        return ()

    @abstractmethod
    def parse_sql(self) -> str:
        """Return SQL for a record from the columns of the topic."""

    def suspect_sql(self, _record_column: str, *, with_judge: bool) -> str | None:
        """Return SQL for a value that is to be judged in Python, else null. None if no value is."""
        return None

    def judged_sql(self, _record_column: str) -> str | None:
        """Return SQL for a record after the judge; None if the judge changes no record."""
        return None

    @abstractmethod
    def value_sql(self, column: Column, record_column: str) -> str:
        """Return SQL for the stored value of a column of a parsed record."""

    @abstractmethod
    def unreadable_clauses(self, record_column: str, *, with_judge: bool) -> str:
        """Return the WHEN clauses for records that cannot be read, each with its reason."""
