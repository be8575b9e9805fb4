"""Suites: the expectations about the records of a topic or the rows of a table, as read from YAML."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.core.display_path import display_path
from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError
from penstock.core.names import suggest_name, suggest_or_list
from penstock.core.source_tree import find_line
from penstock.engine.plan.sources import CheckAction
from penstock.ingestion.contracts.yaml_files import read_yaml, read_yaml_lines
from penstock.ingestion.errors import DocumentError
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite_problems import SuiteProblemCollector

SUITES_FOLDER = Path(__file__).parents[1] / "suites"
TOPICS_FOLDER = "topics"
BatchCut = Literal["final", "day", "version", "rows"]
"""What one check of a table covers: windows that became final (`final`), one day of them (`day`), a version of
the table (`version`), or the rows that the stream wrote since the last check (`rows`).
"""

_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,149}")
_SUITE_KEYS = ("expectations", "batches", "statistics")
_EXPECTATION_KEYS = ("type", "kwargs", "meta")


@dataclass(frozen=True)
class Expectation:
    """One expectation in the terms of Great Expectations, with a name, an action and a reason."""

    type: str
    kwargs: Mapping[str, Any]
    name: str
    action: CheckAction | None = None
    why: str = ""
    line: int | None = field(default=None, compare=False)
    """The line of the suite's file where it starts."""


@dataclass(frozen=True)
class StatisticsSettings:
    """The interval of a table's statistics, and the number of deviations that makes a change sudden.

    The columns in `distinct` also get a count of distinct values.
    """

    every_ms: int
    sensitivity: float
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    """The expectations about a topic or table; `subject` is its folder and name, such as `latest/sensor_minute`."""

    subject: str
    expectations: tuple[Expectation, ...]
    cut: BatchCut = "final"
    statistics: StatisticsSettings | None = None
    file: Path = field(default=Path(), compare=False)

    @property
    def topic(self) -> str | None:
        """The topic that the suite is about; None for a table."""
        folder, _, name = self.subject.partition("/")
        return name if folder == TOPICS_FOLDER else None


def list_suites(folder: Path = SUITES_FOLDER) -> tuple[str, ...]:
    """Return the subjects of all suites."""
    return tuple(
        sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.yaml"))
    )


def load_suite(subject: str, folder: Path = SUITES_FOLDER) -> Suite | None:
    """Return the suite of a topic or table; None if it has none. Raises SuiteError if it is invalid."""
    path = folder / f"{subject}.yaml"
    return _load_suite_file(subject, path, path.stat().st_mtime_ns) if path.exists() else None


@cache
def _load_suite_file(subject: str, path: Path, _written_at: int) -> Suite:
    try:
        document = read_yaml(path)
    except DocumentError as problem:
        raise SuiteError(path, "the file", str(problem), "Fix the YAML") from problem
    if isinstance(document, Mapping):
        _refuse_unknown_keys(path, "the file", document, _SUITE_KEYS)
    if not isinstance(document, Mapping) or "expectations" not in document:
        fix = "Write expectations and, for a table, optional batches and statistics"
        raise SuiteError(path, "the file", f"contains {_describe_content(document) or 'nothing'}", fix)
    if not _is_non_empty_list(document["expectations"]):
        content = document["expectations"] or "none"
        raise SuiteError(
            path, "expectations", f"are {content}", "Write a list of expectations, or delete the file"
        )
    if subject.startswith(f"{TOPICS_FOLDER}/") and "batches" in document:
        fix = "Remove batches: records of a topic are checked when they are read"
        raise SuiteError(path, "batches", f"are {document['batches']}", fix)
    return Suite(
        subject,
        _parse_expectations(path, subject, document["expectations"]),
        _parse_cut(path, document.get("batches", {})),
        _parse_statistics(path, subject, document.get("statistics")),
        path,
    )


def _parse_expectations(path: Path, subject: str, entries: Sequence[Any]) -> tuple[Expectation, ...]:
    """Return the expectations of a suite. The error has the problems of all of them, each with its line."""
    lines = read_yaml_lines(path)
    collector = SuiteProblemCollector()
    expectations: dict[str, Expectation] = {}
    for number, entry in enumerate(entries, 1):
        line = find_line(lines, f"expectations.{number}")
        with collector.collect():
            expectation = _parse_expectation(display_path(path, line), number, entry)
            if expectation.name in expectations:
                fix = "Give one of them another name under meta"
                problem = "two expectations have this name"
                raise SuiteError(display_path(path, line), expectation.name, problem, fix)
            expectations[expectation.name] = replace(expectation, line=line)
            _check_action(display_path(path, line), subject, expectation)
    collector.raise_problems()
    return tuple(expectations.values())


def _refuse_unknown_keys(
    path: Path | str, location: str, entries: Mapping[Any, Any], known_keys: Sequence[str]
) -> None:
    """Refuse keys that do not exist. The error names all of them, each with the nearest key."""
    unknown_keys = [str(key) for key in entries if key not in known_keys]
    if unknown_keys:
        suggestions = "".join(suggest_name(key, known_keys) for key in unknown_keys).lstrip()
        known = ", ".join(known_keys)
        fix = f"{suggestions} Its keys are: {known}".lstrip()
        raise SuiteError(path, location, f"contains unknown keys: {', '.join(unknown_keys)}", fix)


def _parse_expectation(path: str, number: int, entry: Any) -> Expectation:
    location = f"expectation {number}"
    if isinstance(entry, Mapping):
        _refuse_unknown_keys(path, location, entry, _EXPECTATION_KEYS)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise SuiteError(
            path, location, f"contains {_describe_content(entry)}", "Write type, kwargs and meta"
        )
    kwargs, meta = entry.get("kwargs") or {}, entry.get("meta") or {}
    for section, mapping in (("kwargs", kwargs), ("meta", meta)):
        if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
            raise SuiteError(
                path, location, f"{section} is {mapping!r}", "Write a mapping of names to values"
            )
    name = str(meta.get("name") or default_expectation_name(entry["type"], kwargs))
    if not _NAME_PATTERN.fullmatch(name):
        raise SuiteError(
            path,
            location,
            f"name is {name!r}",
            "Under meta, write a name of at most 150 characters of a-z, 0-9 and _",
        )
    action = meta.get("action")
    if action not in (None, *get_args(CheckAction)):
        fix = suggest_or_list(str(action), get_args(CheckAction), "Write one of")
        raise SuiteError(path, name, f"action is {action!r}", fix)
    return Expectation(entry["type"], dict(kwargs), name, action, str(meta.get("why", "")))


def default_expectation_name(expectation_type: str, kwargs: Mapping[str, Any]) -> str:
    """Return the default name of an expectation: its columns and its type."""
    columns = [kwargs.get(key) for key in ("column", "column_A", "column_B")]
    column_list = kwargs.get("column_list")
    columns += column_list if isinstance(column_list, list | tuple) else []
    column_names = [str(column) for column in columns if column]
    short_type = re.sub(
        r"^expect_((compound_columns|column_pair|select_column|multicolumn|column|table)_)?",
        "",
        expectation_type,
    )
    return re.sub(r"[^a-z0-9]+", "_", "_".join([*column_names, short_type]).lower()).strip("_")


def _parse_cut(path: Path, batches: Any) -> BatchCut:
    if not batches:
        return "final"
    match batches:
        case {"window": "final", **rest} if not rest:
            return "final"
        case {"by": ("day" | "version" | "rows") as cut, **rest} if not rest:
            return cut  # type: ignore[no-any-return]  # the pattern allows only these values
        case _:
            fix = "Write {window: final}, {by: day}, {by: rows} or {by: version}"
            raise SuiteError(path, "batches", f"are {batches}", fix)


def _parse_statistics(path: Path, subject: str, settings: Any) -> StatisticsSettings | None:
    if settings is None:
        return None
    fix = "Write {every: 1 hour, sensitivity: 5}, and optionally distinct: [column, ...]"
    try:
        every_ms, sensitivity = parse_duration_ms(str(settings["every"])), float(settings["sensitivity"])
    except (TypeError, KeyError, ValueError, DurationError) as problem:
        raise SuiteError(path, "statistics", f"are {settings} ({problem})", fix) from problem
    if subject.startswith(f"{TOPICS_FOLDER}/") or not 0 < sensitivity < math.inf or every_ms <= 0:
        fix = "Set an interval and a sensitivity above 0, in the suite of a table"
        raise SuiteError(path, "statistics", f"are {settings}", fix)
    distinct = settings.get("distinct", [])
    unknown_keys = set(settings) - {"every", "sensitivity", "distinct"}
    if unknown_keys or not isinstance(distinct, list) or not all(isinstance(name, str) for name in distinct):
        raise SuiteError(path, "statistics", f"are {settings}", fix)
    return StatisticsSettings(every_ms, sensitivity, tuple(distinct))


def _check_action(path: str, subject: str, expectation: Expectation) -> None:
    is_topic = subject.startswith(f"{TOPICS_FOLDER}/")
    if is_topic and expectation.action is None:
        fix = "Write action: warn, quarantine or stop under meta"
        raise SuiteError(path, expectation.name, "has no action, but a topic expectation needs one", fix)
    if not is_topic and expectation.action is not None:
        fix = "Remove the action: only expectations about topics have one"
        raise SuiteError(path, expectation.name, f"action is {expectation.action}", fix)


def _is_non_empty_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _describe_content(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, Mapping) else f"{value!r}"
