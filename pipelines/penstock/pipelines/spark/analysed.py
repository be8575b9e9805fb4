"""Frames that are the same for every batch but for its records: Spark analyses them once.

To analyse what is done with the records takes Spark longer than to do it to a few hundred of them, and comes to the
same each time. So the operators of the first batch are kept, and of each later one the records are put below them.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[["DataFrame"], "DataFrame"]
DATASET = "org.apache.spark.sql.classic.Dataset"


@dataclass(frozen=True)
class _Known:
    """What was made of records with these columns: the operators above them, from the records up."""

    columns: str
    above: tuple[Any, ...] | None
    """None where something is read beside the records: what that is may be another thing with each batch."""


class Analysed:
    """What was made of a stream's batches, by name. One batch at a time."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}

    def over(self, records: "DataFrame", name: Hashable, make: Make) -> "DataFrame":
        """What `make` makes of these records, which must not depend on anything but their columns and the name."""
        plan = _plan(records)
        columns = plan.output().toString()  # each with its id, which is another after the query began anew
        known = self._known.get(name)
        if known is not None and known.columns == columns and known.above is not None:
            return _above(records, plan, known.above)
        made = make(records)
        if known is None or known.columns != columns:
            self._known[name] = _Known(columns, _operators(_plan(made), plan))
        return made


def _plan(frame: "DataFrame") -> Any:
    # PySpark has no word for the plan of a frame, nor for a frame of a plan.
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001


def _operators(plan: Any, records: Any) -> tuple[Any, ...] | None:
    """The operators of a plan above those of its records."""
    found: list[Any] = []
    while not plan.equals(records):
        children = plan.children()
        if children.size() != 1:
            return None
        found.append(plan)
        plan = children.head()
    return tuple(reversed(found))


def _above(records: "DataFrame", plan: Any, operators: tuple[Any, ...]) -> "DataFrame":
    """The frame that these operators make of records."""
    from pyspark.sql import DataFrame

    session = records.sparkSession
    java: Any = session._jvm  # noqa: SLF001
    to_seq = java.PythonUtils.toSeq
    for operator in operators:
        plan = operator.withNewChildren(to_seq([plan]))
    plan.setAnalyzed()  # every column is resolved: those of these records have the ids of the first ones'
    made = getattr(java, DATASET).ofRows(session._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(made, session)
