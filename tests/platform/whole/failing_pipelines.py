"""Pipelines that cannot work: a mistake that only Spark finds, and a bug in a function."""

from pathlib import Path

UNKNOWN_FUNCTION = """
from penstock.stream import count, fixed, read

unknown_function = (
    read("sensors")
    .sql("SELECT *, uper(device) AS name FROM input")
    .key("name")
    .aggregate(n=count())
    .window(fixed("1 minute"))
    .write("unknown_function")
)
"""
BUGGY = """
from penstock.stream import count, fixed, read


def convert(row):
    return {"device": row["device"], "share": divide(row)}


def divide(row):
    return 1 / (row["temperature"] or 1) / 0


buggy = (
    read("sensors")
    .map(convert, returns={"device": "STRING", "share": "DOUBLE"})
    .key("device")
    .aggregate(n=count())
    .window(fixed("1 minute"))
    .write("buggy")
)
"""


def write_failing_pipelines(catalog: Path) -> None:
    """Write both files."""
    (catalog / "unknown_function.py").write_text(UNKNOWN_FUNCTION, "utf-8")
    (catalog / "buggy.py").write_text(BUGGY, "utf-8")
