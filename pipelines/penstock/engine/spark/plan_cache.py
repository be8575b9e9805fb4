"""Reuses the analyzed plan of a stream's first batch for later batches.

Analyzing the plan takes Spark longer than running it over a few hundred records, and gives the same result each
time. So the operators of the first batch are kept, and the records of each later batch are put below them.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


DATASET_CLASS = "org.apache.spark.sql.classic.Dataset"


@dataclass(frozen=True)
class _CachedPlan:
    """The operators above records with these columns, from the records up."""

    columns: str
    operators: tuple[Any, ...] | None
    """None when the plan reads something besides the records, which may differ with each batch."""


class AnalyzedPlanCache:
    """The analyzed plans of a stream's batches, by key. Not safe for concurrent batches."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, _CachedPlan] = {}

    def apply_plan(self, records: "DataFrame", key: Hashable) -> "DataFrame | None":
        """Return the frame that the stored plan of this key makes of records; None when there is no usable plan."""
        plan = _analyzed_plan(records)
        cached = self._plans.get(key)
        if cached is None or cached.operators is None or cached.columns != _column_ids(plan):
            return None
        return _apply_operators(records, plan, cached.operators)

    def store_plan(self, records: "DataFrame", key: Hashable, result: "DataFrame") -> None:
        """Store the operators that make `result` of these records.

        They must depend on nothing but the columns of the records and the key.
        """
        plan = _analyzed_plan(records)
        columns, cached = _column_ids(plan), self._plans.get(key)
        if cached is None or cached.columns != columns:
            self._plans[key] = _CachedPlan(columns, _operators_above(_analyzed_plan(result), plan))


def _column_ids(plan: Any) -> str:
    """Return the columns of a plan, each with its id; a query that starts again has other ids."""
    return str(plan.output().toString())


def _analyzed_plan(frame: "DataFrame") -> Any:
    # PySpark has no public API for the plan of a frame, nor for a frame of a plan.
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001


def _operators_above(plan: Any, records: Any) -> tuple[Any, ...] | None:
    """Return the operators of a plan above its records, from the records up; None unless they form a chain."""
    operators: list[Any] = []
    while not plan.equals(records):
        children = plan.children()
        if children.size() != 1:
            return None
        operators.append(plan)
        plan = children.head()
    return tuple(reversed(operators))


def _apply_operators(records: "DataFrame", plan: Any, operators: tuple[Any, ...]) -> "DataFrame":
    """Return the frame of these operators over records."""
    from pyspark.sql import DataFrame

    session = records.sparkSession
    java: Any = session._jvm  # noqa: SLF001
    to_seq = java.PythonUtils.toSeq
    for operator in operators:
        plan = operator.withNewChildren(to_seq([plan]))
    plan.setAnalyzed()  # every column is resolved: these records have the column ids of the first ones
    dataset = getattr(java, DATASET_CLASS).ofRows(session._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(dataset, session)
