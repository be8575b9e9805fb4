"""Spark's analysis errors in words for a user: what is wrong in which step, without plans and internal columns."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.names import list_names, suggest_name
from penstock.engine.errors import DefinitionError, UnknownNameError
from penstock.engine.plan.steps import ApplyStep, Step, step_kind
from penstock.engine.user_tracebacks import read_user_traceback

EXTERNAL_CONDITIONS = (
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "FAILED_READ_FILE",
)
"""Conditions that may end although no definition changes: what a function reads besides its records."""

_SPARK_DETAILS = re.compile(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+\b.*$|(?<=\w)#\d+L?\b|\bspark_catalog\.")
_POSITION = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")
_QUOTED_NAME = re.compile(r"`([^`]+(?:`\.`[^`]+)*)`")

UNKNOWN_KINDS = {
    "UNRESOLVED_COLUMN": "column",
    "UNRESOLVED_ROUTINE": "function",
    "TABLE_OR_VIEW_NOT_FOUND": "table",
    "FIELD_NOT_FOUND": "field",
}
"""What a name should be, by the condition of Spark's error."""

FIXES = {
    "function": "Write a function of Spark SQL; https://spark.apache.org/docs/latest/api/sql lists them",
    "table": "Read from the view `input`; lookup(...) adds the columns of a table",
}
"""The fix for a kind of name whose known names are not in the error."""


@contextmanager
def translate_step_errors(step: Step, columns: list[str]) -> Iterator[None]:
    """Raise DefinitionError for a step that Spark cannot analyze. `columns` are those that the step reads."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition.startswith(EXTERNAL_CONDITIONS):
            raise
        location = read_user_traceback(error).location if isinstance(step, ApplyStep) else ""
        problem = describe_analysis_error(step_kind(step).lower(), condition, str(error), columns)
        raise (problem.with_location(location) if location else problem) from error


def describe_analysis_error(keyword: str, condition: str, text: str, columns: list[str]) -> DefinitionError:
    """Return the error of a step: an unknown name with the nearest one, or the first line of Spark's message."""
    position = _POSITION.search(text) if keyword == "sql" else None
    place = f" (line {position[1]}, column {int(position[2]) + 1} of the query)" if position else ""
    names = [name.replace("`", "") for name in _QUOTED_NAME.findall(first_line(text))]
    kind = next((UNKNOWN_KINDS[start] for start in UNKNOWN_KINDS if condition.startswith(start)), None)
    if kind is None or not names:
        return DefinitionError(keyword, f"{first_line(text).rstrip('.')}{place}", "Correct this step")
    name = names[0]
    known_names = {
        "column": [column for column in columns if not column.startswith("_")],
        "field": names[1:],
    }.get(kind, [])
    fix = FIXES.get(kind) or (
        f"{suggest_name(name.rpartition('.')[2], known_names).lstrip()} Known {kind}s: "
        f"{list_names(name, known_names)}"
    )
    return UnknownNameError(keyword, f"there is no {kind} {name!r}{place}", fix.strip(), name=name)


def first_line(text: str) -> str:
    """Return the first line of a Spark error that says something, without codes and numbers of columns."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _SPARK_DETAILS.sub("", line).strip()
