"""Frames that are the same for every batch but for its records: Spark analyses them once.

To analyse what is done with the records takes Spark longer than to do it to a few hundred of them, and comes to the
same each time. So the operators of the first batch are kept, and of each later one the records are put below them.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FrameTransform = Callable[["DataFrame"], "DataFrame"]
DATASET_CLASS = "org.apache.spark.sql.classic.Dataset"


@dataclass(frozen=True)
class _CachedPlan:
    """What was made of records with these columns: the operators above them, from the records up."""

    columns: str
    operators: tuple[Any, ...] | None
    """None where something is read beside the records: what that is may be another thing with each batch."""


class AnalyzedPlanCache:
    """What was made of a stream's batches, by name. One batch at a time."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, _CachedPlan] = {}

    def apply_cached(self, records: "DataFrame", key: Hashable, transform: FrameTransform) -> "DataFrame":
        """What `make` makes of these records, which must not depend on anything but their columns and the name."""
        plan = _analyzed_plan(records)
        columns = plan.output().toString()  # each with its id, which is another after the query began anew
        cached = self._plans.get(key)
        if cached is not None and cached.columns == columns and cached.operators is not None:
            return _apply_operators(records, plan, cached.operators)
        transformed = transform(records)
        if cached is None or cached.columns != columns:
            self._plans[key] = _CachedPlan(columns, _operators_above(_analyzed_plan(transformed), plan))
        return transformed


def _analyzed_plan(frame: "DataFrame") -> Any:
    # PySpark has no word for the plan of a frame, nor for a frame of a plan.
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001


def _operators_above(plan: Any, records: Any) -> tuple[Any, ...] | None:
    """The operators of a plan above those of its records."""
    operators: list[Any] = []
    while not plan.equals(records):
        children = plan.children()
        if children.size() != 1:
            return None
        operators.append(plan)
        plan = children.head()
    return tuple(reversed(operators))


def _apply_operators(records: "DataFrame", plan: Any, operators: tuple[Any, ...]) -> "DataFrame":
    """The frame that these operators make of records."""
    from pyspark.sql import DataFrame

    session = records.sparkSession
    java: Any = session._jvm  # noqa: SLF001
    to_seq = java.PythonUtils.toSeq
    for operator in operators:
        plan = operator.withNewChildren(to_seq([plan]))
    plan.setAnalyzed()  # every column is resolved: those of these records have the ids of the first ones'
    dataset = getattr(java, DATASET_CLASS).ofRows(session._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(dataset, session)
