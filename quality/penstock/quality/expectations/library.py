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

EXAMPLES = 5
"""Unexpected values that are kept of each expectation."""


@dataclass(frozen=True)
class Library:
    """What is used of Great Expectations. `context` keeps nothing on disk."""

    module: Any
    context: Any

    def expectation(self, kind: str) -> Any:
        """Return the class of an expectation by the name that suites use; None where there is none."""
        name = "".join(word.capitalize() for word in kind.split("_"))
        return getattr(self.module.expectations, name, None)

    def suite(self, suite: Suite) -> Any:
        """Return a suite as the library has it. SuiteError for what it does not know or does not take."""
        made = [self._made(suite, one) for one in suite.expectations]
        return self.module.ExpectationSuite(name=suite.about, expectations=made)

    def validated(self, suite: Suite, rows: "DataFrame", index: list[str], form: str = "SUMMARY") -> Any:
        """Validate rows on Spark, and return the library's own result; `index` names the columns that tell rows."""
        with quiet():
            source = self.context.data_sources.add_or_update_spark(name="penstock")
            asset = source.add_dataframe_asset(name=suite.about)
            batch = asset.add_batch_definition_whole_dataframe("rows").get_batch({"dataframe": rows})
            wanted = {
                "result_format": form,
                "partial_unexpected_count": EXAMPLES,
                "unexpected_index_column_names": index,
            }
            return batch.validate(self.suite(suite), result_format=wanted)

    def chosen(self, one: Expectation, rows: "DataFrame") -> "DataFrame":
        """Return the rows that an expectation is about: those for which its condition holds, where it has one."""
        if not one.kwargs.get("row_condition"):
            return rows
        from great_expectations.expectations.row_conditions import PassThroughCondition

        with quiet():
            condition = self.expectation(one.type)(**one.kwargs).row_condition
            if isinstance(condition, PassThroughCondition):
                return rows.where(condition.pass_through_filter)
            source = self.context.data_sources.add_or_update_spark(name="penstock")
            return rows.where(source.get_execution_engine().condition_to_filter_clause(condition))

    def _made(self, suite: Suite, one: Expectation) -> Any:
        kind = self.expectation(one.type)
        if kind is None:
            raise SuiteError(suite.file, one.name, f"there is no {one.type}", "See the library's own list")
        try:
            with quiet():
                return kind(**one.kwargs, meta={"name": one.name, "why": one.why})
        except (TypeError, ValueError) as problem:
            told = " ".join(str(problem).split())
            raise SuiteError(
                suite.file, one.name, f"the library does not take it ({told})", "Mend it"
            ) from problem


@cache
def library() -> Library:
    """Load the library."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with quiet(), _a_file_for_main():
        import great_expectations
        import great_expectations.expectations
        from great_expectations.data_context.types.base import ProgressBarsConfig

        context = great_expectations.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return Library(great_expectations, context)


@contextmanager
def _a_file_for_main() -> Iterator[None]:
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
def quiet() -> Iterator[None]:
    """Keep to itself what the library's own dependencies are going to take from it: nobody here can help it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
