"""Records that break one's own code, as Spark sees them: how the code failed, and how such records are left out."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.batch.poison import Poisoned
from penstock.pipelines.errors import SumOverflowError, UserCodeError
from penstock.pipelines.plan.predicates import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LONGEST = 200
ADDRESS = ("_topic", "_partition", "_offset")
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*", re.MULTILINE)
_IN_SQL = re.compile(
    r"\[(?:ARITHMETIC_OVERFLOW|BINARY_ARITHMETIC_OVERFLOW|CAST_INVALID_INPUT|CAST_OVERFLOW|CANNOT_PARSE_[A-Z]+|"
    r"DIVIDE_BY_ZERO|INVALID_ARRAY_INDEX[A-Z_]*|INVALID_FRACTION_OF_SECOND|INTERVAL_[A-Z_]+|"
    r"NUMERIC_VALUE_OUT_OF_RANGE[A-Z_.]*|REMAINDER_BY_ZERO|USER_RAISED_EXCEPTION|DATETIME_FIELD_OUT_OF_BOUNDS[A-Z_.]*)"
    r"[^\n]*"
)
_PYTHON = "org.apache.spark.api.python.PythonException"
_TOO_GREAT = re.compile(r"(\S+) of a window has become greater than its column can hold")
_CRASHED = "Python worker exited unexpectedly"


def said_by_user(problem: BaseException) -> str:
    """What one's own code said when it broke; empty where the problem is Spark's, Kafka's or the machine's."""
    text = str(problem)
    if isinstance(problem, UserCodeError | SumOverflowError):
        return text[:LONGEST]
    if found := _IN_SQL.search(text):
        return found.group()[:LONGEST]
    if _CRASHED in text:
        return _CRASHED
    if type(problem).__name__ == "PythonException" or _PYTHON in text:
        raised = _RAISED.findall(text)
        return (raised[-1] if raised else "it raised an error")[:LONGEST]
    return ""


@contextmanager
def sums_in_words() -> Iterator[None]:
    """Say of a sum that outgrew its column in an executor what is said of one that does here."""
    try:
        yield
    except Exception as problem:
        if found := _TOO_GREAT.search(str(problem)):
            raise SumOverflowError(found[1]) from problem
        raise


def spoiled(records: "DataFrame", poisoned: Sequence[Poisoned]) -> "DataFrame":
    """Records of which these, by their addresses, are no good; why stands in `_invalid`."""
    if not poisoned:
        return records
    named = {name: [getattr(each, name.removeprefix("_")) for each in poisoned] for name in ADDRESS}
    table = pa.table({**named, "_broke": [each.said for each in poisoned]})
    typed = "_topic", "CAST(_partition AS INT) AS _partition", "_offset", "_broke"
    known = records.sparkSession.createDataFrame(table).selectExpr(*typed)
    joined = records.join(known.hint("broadcast"), list(ADDRESS), "left")
    others = [quoted(name) for name in records.columns if name != "_invalid"]
    return joined.selectExpr(*others, "coalesce(_invalid, _broke) AS _invalid")
