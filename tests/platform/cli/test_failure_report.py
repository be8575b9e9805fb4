"""What a command prints about errors of user code, of Spark and of Penstock."""

from pathlib import Path
from typing import Any

from penstock.core.display_path import display_path
from penstock.engine.errors import DefinitionError, ReplayError, UserCodeError
from penstock.engine.user_tracebacks import wrap_user_error
from penstock.platform.cli.failure_report import describe_failure


def divide(row: dict[str, Any]) -> float:
    return float(row["amount"] / 0)


LOCATION = display_path(Path(__file__), divide.__code__.co_firstlineno + 1)


def test_an_error_of_user_code_is_printed_with_the_user_traceback() -> None:
    try:
        try:
            divide({"amount": 1})
        except ZeroDivisionError as cause:
            raise wrap_user_error("map pipelines:divide", cause) from cause
    except UserCodeError as error:
        message = describe_failure(error)
    assert message is not None
    lines = message.splitlines()
    assert lines[0] == f"map divide ({LOCATION}): ZeroDivisionError: division by zero"
    assert lines[1] == "Traceback (most recent call last):"
    assert f"  {LOCATION}, in divide" in lines


def test_an_error_of_penstock_is_one_sentence() -> None:
    assert describe_failure(DefinitionError("key", "'a'", "Name a field")) == "key: 'a'. Name a field"
    assert describe_failure(ReplayError("s", "it has no history", "Start it")) == (
        "stream s: it has no history. Start it."
    )


def test_a_fault_of_penstock_keeps_its_whole_traceback() -> None:
    assert describe_failure(KeyError("batch")) is None


def test_an_error_of_spark_is_its_first_line() -> None:
    from pyspark.errors import AnalysisException

    error = AnalysisException(
        "[PATH_NOT_FOUND] Path does not exist: file:/a. SQLSTATE: 42K03;\n'Project [a#1]"
    )
    assert describe_failure(error) == "AnalysisException: [PATH_NOT_FOUND] Path does not exist: file:/a"
