"""A suite: what is expected of the records of a topic, or of the rows of a table, as its file says it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.ingestion.contracts.documents import document_in
from penstock.ingestion.durations import milliseconds
from penstock.ingestion.errors import ContractError, DocumentError
from penstock.pipelines.plan.source import CheckAction
from penstock.quality.errors import SuiteError

FOLDER = Path(__file__).parents[1] / "suites"
TOPICS = "topics"
Cut = Literal["final", "day", "version", "rows"]
"""What a batch at rest is: the windows that became final, a day of them, a version of the table as it is, or the
rows that the stream has written since the last one."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,149}")
_KEYS = {"expectations", "batches", "statistics"}


@dataclass(frozen=True)
class Expectation:
    """One expectation, in the words of Great Expectations, and what of it is ours: a name, an action, and why."""

    type: str
    kwargs: Mapping[str, Any]
    name: str
    action: CheckAction | None = None
    why: str = ""


@dataclass(frozen=True)
class Statistics:
    """Figures of a table for each stretch of time, and from how many deviations on a change is sudden.

    Of the columns in `distinct` it is said how many different values they have.
    """

    every_ms: int
    sensitivity: float
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    """What is expected of a topic or a table: `about` is its folder and name, as `latest/sensor_minute`."""

    about: str
    expectations: tuple[Expectation, ...]
    cut: Cut = "final"
    statistics: Statistics | None = None
    file: Path = field(default=Path(), compare=False)

    @property
    def of_topic(self) -> str | None:
        """The topic whose records are expected so; None for a table."""
        folder, _, name = self.about.partition("/")
        return name if folder == TOPICS else None


def suite_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return what there are suites about."""
    return tuple(
        sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.yaml"))
    )


def load_suite(about: str, folder: Path = FOLDER) -> Suite | None:
    """Return the suite of a topic or a table; None where there is none. SuiteError where it cannot be used."""
    path = folder / f"{about}.yaml"
    return _read(about, path, path.stat().st_mtime_ns) if path.exists() else None


@cache
def _read(about: str, path: Path, _written_at: int) -> Suite:
    try:
        told = document_in(path)
    except DocumentError as problem:
        raise SuiteError(path, "the file", str(problem), "Mend it") from problem
    if not isinstance(told, Mapping) or not set(told) <= _KEYS or "expectations" not in told:
        fix = "Write expectations, and for a table batches and statistics where they are wanted"
        raise SuiteError(path, "the file", f"it holds {_listed(told) or 'nothing'}", fix)
    if not _is_list(told["expectations"]):
        said = told["expectations"] or "none"
        raise SuiteError(path, "expectations", f"they are {said}", "Write a list of them, or remove the file")
    if about.startswith(f"{TOPICS}/") and "batches" in told:
        fix = "Leave them out: records of a topic are checked as they are read"
        raise SuiteError(path, "batches", f"they are {told['batches']}", fix)
    suite = Suite(
        about,
        tuple(_expectation(path, number, one) for number, one in enumerate(told["expectations"], 1)),
        _cut(path, told.get("batches", {})),
        _statistics(path, about, told.get("statistics")),
        path,
    )
    names = [one.name for one in suite.expectations]
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(
                path, name, "two expectations have this name", "Give one of them a name under meta"
            )
    for one in suite.expectations:
        _check_action(path, suite, one)
    return suite


def _expectation(path: Path, number: int, told: Any) -> Expectation:
    where = f"expectation {number}"
    if (
        not isinstance(told, Mapping)
        or not isinstance(told.get("type"), str)
        or not set(told) <= {"type", "kwargs", "meta"}
    ):
        raise SuiteError(path, where, f"it holds {_listed(told)}", "Write type, kwargs and meta")
    kwargs, meta = told.get("kwargs") or {}, told.get("meta") or {}
    for what, said in (("kwargs", kwargs), ("meta", meta)):
        if not isinstance(said, Mapping) or not all(isinstance(name, str) for name in said):
            raise SuiteError(path, where, f"its {what} are {said!r}", "Write names, and what each is")
    name = str(meta.get("name") or default_name(told["type"], kwargs))
    if not _NAME.fullmatch(name):
        raise SuiteError(
            path,
            where,
            f"its name is {name!r}",
            "Write 150 of a to z, 0 to 9 and _ at most, as name under meta",
        )
    action = meta.get("action")
    if action not in (None, *get_args(CheckAction)):
        known = ", ".join(get_args(CheckAction))
        raise SuiteError(path, name, f"its action is {action!r}", f"Write one of: {known}")
    return Expectation(told["type"], dict(kwargs), name, action, str(meta.get("why", "")))


def default_name(kind: str, kwargs: Mapping[str, Any]) -> str:
    """Return the name of an expectation that was given none: its columns, and what is expected of them."""
    columns = [kwargs.get(key) for key in ("column", "column_A", "column_B")]
    several = kwargs.get("column_list")
    columns += several if isinstance(several, list | tuple) else []
    named = [str(column) for column in columns if column]
    short = re.sub(
        r"^expect_((compound_columns|column_pair|select_column|multicolumn|column|table)_)?", "", kind
    )
    return re.sub(r"[^a-z0-9]+", "_", "_".join([*named, short]).lower()).strip("_")


def _cut(path: Path, told: Any) -> Cut:
    if not told:
        return "final"
    match told:
        case {"window": "final", **other} if not other:
            return "final"
        case {"by": ("day" | "version" | "rows") as cut, **other} if not other:
            return cut  # type: ignore[no-any-return]  # the pattern has said which
        case _:
            fix = "Write {window: final}, {by: day}, {by: rows} or {by: version}"
            raise SuiteError(path, "batches", f"they are {told}", fix)


def _statistics(path: Path, about: str, told: Any) -> Statistics | None:
    if told is None:
        return None
    fix = "Write them as {every: 1 hour, sensitivity: 5}, and distinct: [column, ...] where it matters"
    try:
        every, sensitivity = milliseconds(str(told["every"])), float(told["sensitivity"])
    except (TypeError, KeyError, ValueError, ContractError) as problem:
        raise SuiteError(path, "statistics", f"they are {told} ({problem})", fix) from problem
    if about.startswith(f"{TOPICS}/") or not 0 < sensitivity < math.inf or every <= 0:
        fix = "Give a table's suite a stretch and a number of deviations above 0"
        raise SuiteError(path, "statistics", f"they are {told}", fix)
    distinct = told.get("distinct", [])
    strange = set(told) - {"every", "sensitivity", "distinct"}
    if strange or not isinstance(distinct, list) or not all(isinstance(name, str) for name in distinct):
        raise SuiteError(path, "statistics", f"they are {told}", fix)
    return Statistics(every, sensitivity, tuple(distinct))


def _check_action(path: Path, suite: Suite, one: Expectation) -> None:
    if suite.of_topic is not None and one.action is None:
        fix = "Write action: warn, quarantine or stop under meta"
        raise SuiteError(path, one.name, "it has no action, and is checked while records are read", fix)
    if suite.of_topic is None and one.action is not None:
        fix = "Leave the action out: what is expected of a table is checked when its rows are written"
        raise SuiteError(path, one.name, f"its action is {one.action}", fix)


def _is_list(told: Any) -> bool:
    return isinstance(told, list) and bool(told)


def _listed(told: Any) -> str:
    return ", ".join(map(str, told)) if isinstance(told, Mapping) else f"{told!r}"
