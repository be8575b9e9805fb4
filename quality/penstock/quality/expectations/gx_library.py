"""Great Expectations itself, loaded when it is first wanted: that takes seconds. It sends nothing to anybody."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite import Expectation, Suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_EXAMPLES = 5
"""Unexpected values that are kept of each expectation."""


@dataclass(frozen=True)
class GxLibrary:
    """What is used of Great Expectations. `context` keeps nothing on disk."""

    module: Any
    context: Any

    def find_expectation(self, kind: str) -> Any:
        """Return the class of an expectation by the name that suites use; None where there is none."""
        name = "".join(word.capitalize() for word in kind.split("_"))
        return getattr(self.module.expectations, name, None)

    def build_suite(self, suite: Suite) -> Any:
        """Return a suite as the library has it. SuiteError for what it does not know or does not take."""
        gx_expectations = [self._build_expectation(suite, expectation) for expectation in suite.expectations]
        return self.module.ExpectationSuite(name=suite.subject, expectations=gx_expectations)

    def validate_rows(
        self, suite: Suite, rows: "DataFrame", identity_columns: list[str], result_format: str = "SUMMARY"
    ) -> Any:
        """Validate rows on Spark, and return the library's own result; `index` names the columns that tell rows."""
        with suppress_warnings():
            source = self.context.data_sources.add_or_update_spark(name="penstock")
            asset = source.add_dataframe_asset(name=suite.subject)
            batch = asset.add_batch_definition_whole_dataframe("rows").get_batch({"dataframe": rows})
            format_options = {
                "result_format": result_format,
                "partial_unexpected_count": MAX_EXAMPLES,
                "unexpected_index_column_names": identity_columns,
            }
            return batch.validate(self.build_suite(suite), result_format=format_options)

    def filter_relevant_rows(self, expectation: Expectation, rows: "DataFrame") -> "DataFrame":
        """Return the rows that an expectation is about: those for which its condition holds, where it has one."""
        if not expectation.kwargs.get("row_condition"):
            return rows
        from great_expectations.expectations.row_conditions import PassThroughCondition

        with suppress_warnings():
            condition = self.find_expectation(expectation.type)(**expectation.kwargs).row_condition
            if isinstance(condition, PassThroughCondition):
                return rows.where(condition.pass_through_filter)
            source = self.context.data_sources.add_or_update_spark(name="penstock")
            return rows.where(source.get_execution_engine().condition_to_filter_clause(condition))

    def _build_expectation(self, suite: Suite, expectation: Expectation) -> Any:
        expectation_class = self.find_expectation(expectation.type)
        if expectation_class is None:
            raise SuiteError(
                suite.file, expectation.name, f"there is no {expectation.type}", "See the library's own list"
            )
        try:
            with suppress_warnings():
                return expectation_class(
                    **expectation.kwargs, meta={"name": expectation.name, "why": expectation.why}
                )
        except (TypeError, ValueError) as problem:
            message = " ".join(str(problem).split())
            raise SuiteError(
                suite.file, expectation.name, f"the library does not take it ({message})", "Mend it"
            ) from problem


@cache
def load_library() -> GxLibrary:
    """Load the library."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with suppress_warnings(), _ensure_main_file():
        import great_expectations
        import great_expectations.expectations
        from great_expectations.data_context.types.base import ProgressBarsConfig

        context = great_expectations.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return GxLibrary(great_expectations, context)


@contextmanager
def _ensure_main_file() -> Iterator[None]:
    """Say of which file the program is, where that is unknown.

    PySpark's client, which the library loads, takes a program without one for a run of examples, and ends it.
    """
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = "unknown"
    try:
        yield
    finally:
        del main.__file__


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Keep to itself what the library's own dependencies are going to take from it: nobody here can help it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
