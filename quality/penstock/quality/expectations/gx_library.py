"""Great Expectations, imported on first use because the import takes seconds. Telemetry is off."""

import os
import re
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
"""The maximum number of unexpected values that are stored per expectation."""


@dataclass(frozen=True)
class GxLibrary:
    """The parts of Great Expectations that Penstock uses. `context` stores nothing on disk."""

    module: Any
    context: Any

    def find_expectation(self, kind: str) -> Any:
        """Return the class of an expectation by its name in suites; None if it does not exist."""
        name = "".join(word.capitalize() for word in kind.split("_"))
        return getattr(self.module.expectations, name, None)

    def list_expectations(self) -> dict[str, Any]:
        """Return the class of each expectation by its name in suites, sorted."""
        classes = vars(self.module.expectations)
        names = {
            name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            for name in classes
            if name.startswith("Expect")
        }
        by_suite_name = {suite_name: classes[name] for name, suite_name in names.items()}
        return {name: by_suite_name[name] for name in sorted(by_suite_name) if self.find_expectation(name)}

    def build_suite(self, suite: Suite) -> Any:
        """Return a suite as an object of the library. Raises SuiteError for unknown or invalid expectations."""
        gx_expectations = [self._build_expectation(suite, expectation) for expectation in suite.expectations]
        return self.module.ExpectationSuite(name=suite.subject, expectations=gx_expectations)

    def validate_rows(
        self, suite: Suite, rows: "DataFrame", identity_columns: list[str], result_format: str = "SUMMARY"
    ) -> Any:
        """Validate rows on Spark and return the library's result. `identity_columns` identify example rows."""
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
        """Return the rows that match the row condition of an expectation, or all rows without one."""
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
                suite.file,
                expectation.name,
                f"unknown expectation {expectation.type}",
                "See the gallery of Great Expectations",
            )
        try:
            with suppress_warnings():
                return expectation_class(
                    **expectation.kwargs, meta={"name": expectation.name, "why": expectation.why}
                )
        except (TypeError, ValueError) as problem:
            message = " ".join(str(problem).split())
            raise SuiteError(
                suite.file,
                expectation.name,
                f"Great Expectations rejects it ({message})",
                "Fix its arguments",
            ) from problem


@cache
def load_library() -> GxLibrary:
    """Import Great Expectations and return it."""
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
    """Set `__main__.__file__` if it is missing.

    The PySpark client that the library imports takes a program without a main file for a doctest run and exits.
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
    """Silence deprecation warnings of the library's own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
