"""A suite: what is expected of the records of a topic, or of the rows of a table, as its file says it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.engine.plan.sources import CheckAction
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.durations import parse_duration_ms
from penstock.ingestion.errors import ContractError, DocumentError
from penstock.quality.errors import SuiteError

SUITES_FOLDER = Path(__file__).parents[1] / "suites"
TOPICS_FOLDER = "topics"
BatchCut = Literal["final", "day", "version", "rows"]
"""What a batch at rest is: the windows that became final, a day of them, a version of the table as it is, or the
rows that the stream has written since the last one."""

_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,149}")
_SUITE_KEYS = {"expectations", "batches", "statistics"}


@dataclass(frozen=True)
class Expectation:
    """One expectation, in the words of Great Expectations, and what of it is ours: a name, an action, and why."""

    type: str
    kwargs: Mapping[str, Any]
    name: str
    action: CheckAction | None = None
    why: str = ""


@dataclass(frozen=True)
class StatisticsSettings:
    """Figures of a table for each stretch of time, and from how many deviations on a change is sudden.

    Of the columns in `distinct` it is said how many different values they have.
    """

    every_ms: int
    sensitivity: float
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    """What is expected of a topic or a table: `about` is its folder and name, as `latest/sensor_minute`."""

    subject: str
    expectations: tuple[Expectation, ...]
    cut: BatchCut = "final"
    statistics: StatisticsSettings | None = None
    file: Path = field(default=Path(), compare=False)

    @property
    def topic(self) -> str | None:
        """The topic whose records are expected so; None for a table."""
        folder, _, name = self.subject.partition("/")
        return name if folder == TOPICS_FOLDER else None


def list_suites(folder: Path = SUITES_FOLDER) -> tuple[str, ...]:
    """Return what there are suites about."""
    return tuple(
        sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.yaml"))
    )


def load_suite(subject: str, folder: Path = SUITES_FOLDER) -> Suite | None:
    """Return the suite of a topic or a table; None where there is none. SuiteError where it cannot be used."""
    path = folder / f"{subject}.yaml"
    return _load_suite_file(subject, path, path.stat().st_mtime_ns) if path.exists() else None


@cache
def _load_suite_file(subject: str, path: Path, _written_at: int) -> Suite:
    try:
        document = read_yaml(path)
    except DocumentError as problem:
        raise SuiteError(path, "the file", str(problem), "Mend it") from problem
    if (
        not isinstance(document, Mapping)
        or not set(document) <= _SUITE_KEYS
        or "expectations" not in document
    ):
        fix = "Write expectations, and for a table batches and statistics where they are wanted"
        raise SuiteError(path, "the file", f"it holds {_describe_content(document) or 'nothing'}", fix)
    if not _is_non_empty_list(document["expectations"]):
        content = document["expectations"] or "none"
        raise SuiteError(
            path, "expectations", f"they are {content}", "Write a list of them, or remove the file"
        )
    if subject.startswith(f"{TOPICS_FOLDER}/") and "batches" in document:
        fix = "Leave them out: records of a topic are checked as they are read"
        raise SuiteError(path, "batches", f"they are {document['batches']}", fix)
    suite = Suite(
        subject,
        tuple(
            _parse_expectation(path, number, expectation)
            for number, expectation in enumerate(document["expectations"], 1)
        ),
        _parse_cut(path, document.get("batches", {})),
        _parse_statistics(path, subject, document.get("statistics")),
        path,
    )
    names = [expectation.name for expectation in suite.expectations]
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(
                path, name, "two expectations have this name", "Give one of them a name under meta"
            )
    for expectation in suite.expectations:
        _check_action(path, suite, expectation)
    return suite


def _parse_expectation(path: Path, number: int, entry: Any) -> Expectation:
    location = f"expectation {number}"
    if (
        not isinstance(entry, Mapping)
        or not isinstance(entry.get("type"), str)
        or not set(entry) <= {"type", "kwargs", "meta"}
    ):
        raise SuiteError(
            path, location, f"it holds {_describe_content(entry)}", "Write type, kwargs and meta"
        )
    kwargs, meta = entry.get("kwargs") or {}, entry.get("meta") or {}
    for section, mapping in (("kwargs", kwargs), ("meta", meta)):
        if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
            raise SuiteError(
                path, location, f"its {section} are {mapping!r}", "Write names, and what each is"
            )
    name = str(meta.get("name") or default_expectation_name(entry["type"], kwargs))
    if not _NAME_PATTERN.fullmatch(name):
        raise SuiteError(
            path,
            location,
            f"its name is {name!r}",
            "Write 150 of a to z, 0 to 9 and _ at most, as name under meta",
        )
    action = meta.get("action")
    if action not in (None, *get_args(CheckAction)):
        known_actions = ", ".join(get_args(CheckAction))
        raise SuiteError(path, name, f"its action is {action!r}", f"Write one of: {known_actions}")
    return Expectation(entry["type"], dict(kwargs), name, action, str(meta.get("why", "")))


def default_expectation_name(expectation_type: str, kwargs: Mapping[str, Any]) -> str:
    """Return the name of an expectation that was given none: its columns, and what is expected of them."""
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
            return cut  # type: ignore[no-any-return]  # the pattern has said which
        case _:
            fix = "Write {window: final}, {by: day}, {by: rows} or {by: version}"
            raise SuiteError(path, "batches", f"they are {batches}", fix)


def _parse_statistics(path: Path, subject: str, settings: Any) -> StatisticsSettings | None:
    if settings is None:
        return None
    fix = "Write them as {every: 1 hour, sensitivity: 5}, and distinct: [column, ...] where it matters"
    try:
        every_ms, sensitivity = parse_duration_ms(str(settings["every"])), float(settings["sensitivity"])
    except (TypeError, KeyError, ValueError, ContractError) as problem:
        raise SuiteError(path, "statistics", f"they are {settings} ({problem})", fix) from problem
    if subject.startswith(f"{TOPICS_FOLDER}/") or not 0 < sensitivity < math.inf or every_ms <= 0:
        fix = "Give a table's suite a stretch and a number of deviations above 0"
        raise SuiteError(path, "statistics", f"they are {settings}", fix)
    distinct = settings.get("distinct", [])
    unknown_keys = set(settings) - {"every", "sensitivity", "distinct"}
    if unknown_keys or not isinstance(distinct, list) or not all(isinstance(name, str) for name in distinct):
        raise SuiteError(path, "statistics", f"they are {settings}", fix)
    return StatisticsSettings(every_ms, sensitivity, tuple(distinct))


def _check_action(path: Path, suite: Suite, expectation: Expectation) -> None:
    if suite.topic is not None and expectation.action is None:
        fix = "Write action: warn, quarantine or stop under meta"
        raise SuiteError(
            path, expectation.name, "it has no action, and is checked while records are read", fix
        )
    if suite.topic is None and expectation.action is not None:
        fix = "Leave the action out: what is expected of a table is checked when its rows are written"
        raise SuiteError(path, expectation.name, f"its action is {expectation.action}", fix)


def _is_non_empty_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _describe_content(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, Mapping) else f"{value!r}"
