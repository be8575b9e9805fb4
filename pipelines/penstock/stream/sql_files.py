"""Pipelines in SQL files, for the public API."""

from pathlib import Path

from penstock.stream.pipeline import Pipeline


def from_sql(path: Path) -> Pipeline:
    """Load a definition from a SQL file with one `CREATE STREAM` statement.

    Args:
        path: the file. Its name is the name of the stream.

    Example:
        from_sql(Path("catalog/sensor_minute.sql")).to_plan("sensor_minute")

    Raises DefinitionError with all problems of the file, each with line and column.
    """
    from penstock.stream.sql_loader.document import load_sql  # imports sqlglot, which takes 80 ms

    return load_sql(path)
