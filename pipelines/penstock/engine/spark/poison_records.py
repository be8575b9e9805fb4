"""Finds errors of user code in Spark's errors, and marks the records that cause them as invalid."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import SumOverflowError, UserCodeError
from penstock.engine.user_tracebacks import parse_user_traceback

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_REASON_CHARS = 200
ADDRESS_COLUMNS = ("_topic", "_partition", "_offset")
_PYTHON_ERROR_LINE = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*", re.MULTILINE)
_SQL_ERROR = re.compile(
    r"\[(?:ARITHMETIC_OVERFLOW|BINARY_ARITHMETIC_OVERFLOW|CAST_INVALID_INPUT|CAST_OVERFLOW|CANNOT_PARSE_[A-Z]+|"
    r"DIVIDE_BY_ZERO|INVALID_ARRAY_INDEX[A-Z_]*|INVALID_FRACTION_OF_SECOND|INTERVAL_[A-Z_]+|"
    r"NUMERIC_VALUE_OUT_OF_RANGE[A-Z_.]*|REMAINDER_BY_ZERO|USER_RAISED_EXCEPTION|DATETIME_FIELD_OUT_OF_BOUNDS[A-Z_.]*)"
    r"[^\n]*"
)
_PYTHON_EXCEPTION_CLASS = "org.apache.spark.api.python.PythonException"
_SUM_OVERFLOW = re.compile(r"(\S+) of a window exceeds what its column can hold")
_WRAPPED_ERROR = f"{UserCodeError.__name__}: "
_WORKER_CRASHED = "Python worker exited unexpectedly"


def user_error_text(problem: BaseException) -> str:
    """Return the error text of user code; empty when the problem is that of Spark, Kafka or the machine."""
    text = str(problem)
    if isinstance(problem, UserCodeError | SumOverflowError):
        return text[:MAX_REASON_CHARS]
    if sql_error := _SQL_ERROR.search(text):
        return sql_error.group()[:MAX_REASON_CHARS]
    if _WORKER_CRASHED in text:
        return _WORKER_CRASHED
    if type(problem).__name__ == "PythonException" or _PYTHON_EXCEPTION_CLASS in text:
        error_lines = _PYTHON_ERROR_LINE.findall(text)
        last_line = error_lines[-1] if error_lines else "user code raised an error"
        if _WRAPPED_ERROR in last_line:
            return last_line.partition(_WRAPPED_ERROR)[2][:MAX_REASON_CHARS]
        user_traceback = parse_user_traceback(text)
        if user_traceback is None:
            return last_line[:MAX_REASON_CHARS]
        frame = user_traceback.frames[-1]
        return f"{frame.function} ({frame.location}): {user_traceback.error}"[:MAX_REASON_CHARS]
    return ""


@contextmanager
def translate_sum_overflow() -> Iterator[None]:
    """Raise SumOverflowError for a sum that overflows its column in an executor, as in the driver."""
    try:
        yield
    except Exception as problem:
        if overflow := _SUM_OVERFLOW.search(str(problem)):
            raise SumOverflowError(overflow[1]) from problem
        raise


def invalidate_excluded(records: "DataFrame", excluded_records: Sequence[ExcludedRecord]) -> "DataFrame":
    """Mark the records at these addresses as invalid; `_invalid` holds the reason."""
    if not excluded_records:
        return records
    addresses = {
        name: [getattr(excluded, name.removeprefix("_")) for excluded in excluded_records]
        for name in ADDRESS_COLUMNS
    }
    table = pa.table({**addresses, "_broke": [excluded.quarantine_reason for excluded in excluded_records]})
    typed_columns = "_topic", "CAST(_partition AS INT) AS _partition", "_offset", "_broke"
    excluded_rows = records.sparkSession.createDataFrame(table).selectExpr(*typed_columns)
    joined = records.join(excluded_rows.hint("broadcast"), list(ADDRESS_COLUMNS), "left")
    columns = [quote_column(name) for name in records.columns if name != "_invalid"]
    return joined.selectExpr(*columns, "coalesce(_invalid, _broke) AS _invalid")
