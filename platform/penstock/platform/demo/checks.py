"""What is expected of the tables of a demonstration, by the suites that check them wherever they are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.pipelines.plan import Plan
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.places import folder_of
from penstock.quality.expectations.at_rest import broken_rows
from penstock.quality.expectations.suite import Expectation, load_suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Checked:
    """An expectation of a table, and how many of its rows do not meet it."""

    table: str
    expectation: Expectation
    rows: int
    broken: int


def check_tables(session: "SparkSession", plan: Plan, warehouse: Path) -> Iterator[Checked]:
    """Yield every expectation of single rows that a table of the pipeline has, in the order of their files.

    The rows are asked in SQL, as they are while records are read; the library itself would take seconds to load.
    """
    for about in (f"{folder_of(sink)}/{sink.table}" for stage in plan.stages for sink in stage.sinks):
        suite = load_suite(about)
        if suite is None or not is_table(warehouse / about):
            continue
        found = delta_table(warehouse / about).to_pyarrow_table()
        if "kind" in found.column_names:
            found = found.filter(pc.equal(found.column("kind"), "insert"))
        rows = session.createDataFrame(found)
        for expectation in suite.expectations:
            broken = broken_rows(expectation, rows)
            if broken is not None:
                yield Checked(about, expectation, found.num_rows, broken.count())
