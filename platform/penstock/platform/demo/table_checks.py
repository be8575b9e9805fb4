"""Checks of a demonstration's tables against their expectation suites."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.engine.plan.stages import Plan
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.table_paths import list_result_paths
from penstock.quality.expectations.suite import Expectation, load_suite
from penstock.quality.expectations.table_checks import select_unexpected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TableCheck:
    """An expectation of a table, and the number of rows that do not meet it."""

    table: str
    expectation: Expectation
    rows: int
    unexpected_rows: int


def check_demo_tables(session: "SparkSession", plan: Plan, warehouse: Path) -> Iterator[TableCheck]:
    """Yield the result of every row-level expectation of the pipeline's tables, in the order of the suites.

    The checks run as SQL, as they do in a stream; the expectation library would take seconds to import.
    """
    for table_path in list_result_paths(plan):
        suite = load_suite(table_path)
        if suite is None or not is_delta_table(warehouse / table_path):
            continue
        table_rows = open_delta_table(warehouse / table_path).to_pyarrow_table()
        if "kind" in table_rows.column_names:
            table_rows = table_rows.filter(pc.equal(table_rows.column("kind"), "insert"))
        frame = session.createDataFrame(table_rows)
        for expectation in suite.expectations:
            unexpected = select_unexpected_rows(expectation, frame)
            if unexpected is not None:
                yield TableCheck(table_path, expectation, table_rows.num_rows, unexpected.count())
