"""Tracebacks of user code: from exceptions, and from the text of Spark's errors."""

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock.engine.user_tracebacks as module
from penstock.core.display_path import display_path
from penstock.core.errors import PenstockError
from penstock.engine.errors import UserCodeError
from penstock.engine.host.error_report import describe_user_traceback, summarize_error
from penstock.engine.user_tracebacks import parse_user_traceback, read_user_traceback, wrap_user_error

HERE = str(Path(__file__))

SPARK_TEXT = f"""Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "{module.__file__}", line 90, in map_rows
    returned = function(row)
               ^^^^^^^^^^^^^
  File "{HERE}", line 4, in tax
    return {{"tax": rate(row)}}
                   ^^^^^^^^^
  File "{HERE}", line 9, in rate
    return row["amount"] / row["zero"]
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "{module.__file__}", line 103, in map_rows
    raise wrap_user_error(step.function.name, error) from error
penstock.engine.errors.UserCodeError: map tax: ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat org.apache.spark.sql.execution.python.PythonArrowOutput$$anon$1.read(PythonArrowOutput.scala:133)
"""

ANALYSIS_TEXT = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `amout` cannot be resolved. SQLSTATE: 42703;
'Project [country#123, 'amout]
+- SubqueryAlias input
   +- Project [_record_0#123585._invalid AS _invalid#123586]
"""


def divide(row: dict[str, int]) -> float:
    return row["amount"] / row["zero"]


def wrap_error_of(call: Callable[[], object]) -> UserCodeError:
    try:
        call()
    except ZeroDivisionError as error:
        return wrap_user_error("map pipelines.tax:divide", error)
    raise AssertionError("it must fail")


def test_an_error_of_user_code_names_function_file_and_line() -> None:
    error = wrap_error_of(lambda: divide({"amount": 1, "zero": 0}))
    line = divide.__code__.co_firstlineno + 1
    assert str(error) == (
        f"map divide (tests/pipelines/engine/definition/test_user_tracebacks.py:{line}): "
        "ZeroDivisionError: division by zero"
    )


def test_the_text_of_spark_gives_the_frames_of_user_files_of_the_first_error() -> None:
    parsed = parse_user_traceback(SPARK_TEXT)
    assert parsed is not None
    assert [(frame.line, frame.function) for frame in parsed.frames] == [(4, "tax"), (9, "rate")]
    assert parsed.error == "ZeroDivisionError: division by zero"
    assert parsed.as_text().splitlines() == [
        "Traceback (most recent call last):",
        "  tests/pipelines/engine/definition/test_user_tracebacks.py:4, in tax",
        '    return {"tax": rate(row)}',
        "  tests/pipelines/engine/definition/test_user_tracebacks.py:9, in rate",
        '    return row["amount"] / row["zero"]',
        "ZeroDivisionError: division by zero",
        "(1 frame of libraries and of the engine hidden)",
    ]


def test_an_error_without_user_code_has_no_traceback() -> None:
    assert parse_user_traceback("java.io.IOException: no space left") is None
    assert describe_user_traceback(PenstockError("the broker is away")) == ""


def test_the_traceback_of_a_cause_is_found() -> None:
    try:
        try:
            divide({"amount": 1, "zero": 0})
        except ZeroDivisionError as cause:
            raise PenstockError("more than 10 records") from cause
    except PenstockError as error:
        found = read_user_traceback(error)
    assert found.frames[-1].function == "divide"
    assert found.error == "ZeroDivisionError: division by zero"


class AnalysisError(Exception):
    """An error of Spark, with its plan in the text."""


@pytest.mark.parametrize(
    ("error", "summary"),
    [
        (PenstockError("Two words.\n  And more."), "Two words.; And more."),
        (
            AnalysisError(SPARK_TEXT),
            f"rate ({display_path(Path(HERE), 9)}): ZeroDivisionError: division by zero",
        ),
        (
            AnalysisError(ANALYSIS_TEXT),
            "AnalysisError: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `amout` cannot be resolved",
        ),
        (ValueError(""), "ValueError"),
    ],
    ids=["ours", "user code", "plan", "empty"],
)
def test_the_summary_is_one_line_without_plans_and_scala_frames(error: Exception, summary: str) -> None:
    assert summarize_error(error) == summary
