"""Parses records that only their format can read, in Python: the judge in the plan gives each record as JSON."""

from penstock.engine.spark.parse.json_parser import JsonParser
from penstock.engine.spark.parse.record_parser import RAW_COLUMN


class PythonParser(JsonParser):
    """Lets the judge read every value."""

    @property
    def needs_judge(self) -> bool:
        """Every record needs it."""
        return True

    def parse_sql(self) -> str:
        """Return SQL for the record of a tombstone; every other record is null before the judge."""
        tombstone = self._tombstone_json_sql()
        text = f"CASE WHEN value IS NULL THEN {tombstone} END" if tombstone else "CAST(NULL AS STRING)"
        return self._from_json_sql(text)

    def suspect_sql(self, _record_column: str, *, with_judge: bool) -> str | None:
        """Return SQL for every value."""
        return RAW_COLUMN

    def unreadable_clauses(self, record_column: str, *, with_judge: bool) -> str:
        """Return clauses for what the judge refused."""
        return self._judged_clauses(record_column, with_judge=True)
