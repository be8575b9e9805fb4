"""What came of checking a batch: kept as a file, so that the next batch begins after it and a page can show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from penstock.quality.expectations.batches import Batch
from penstock.quality.expectations.suite import Cut

CALLED = "An error occurred while calling"


@dataclass(frozen=True)
class Met:
    """One expectation and the rows of a batch: how many there were, how many did not meet it, and some of them.

    `observed` is what was measured where the expectation is about all rows together. `rows` is the file that holds
    those that did not meet it, where they could be told.
    """

    name: str
    type: str
    why: str
    passed: bool
    checked: int | None = None
    unexpected: int | None = None
    examples: tuple[Any, ...] = ()
    observed: Any = None
    rows: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A batch of a table, when it was checked, and what came of each expectation."""

    about: str
    batch: Batch
    at_ms: int
    met: tuple[Met, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return all(one.passed for one in self.met)


class Outcomes:
    """The outcomes of one table, in a folder: a file for each batch."""

    def __init__(self, home: Path, about: str) -> None:
        self.folder = home / "quality" / about.replace("/", "-")

    def newest(self, cut: Cut | None = None) -> Outcome | None:
        """Return the last batch that was checked, of one kind or of any."""
        return next(self.all() if cut is None else self._of(cut), None)

    def all(self) -> Iterator[Outcome]:
        """Yield what is kept, from young to old; batches of another kind come as their last one does."""
        kinds = [(last, rest) for rest in map(self._of, get_args(Cut)) if (last := next(rest, None))]
        for last, rest in sorted(kinds, key=lambda kind: kind[0].at_ms, reverse=True):
            yield last
            yield from rest

    def _of(self, cut: Cut) -> Iterator[Outcome]:
        for path in sorted(self.folder.glob(f"{cut}-*.json"), reverse=True):
            yield msgspec.json.decode(path.read_bytes(), type=Outcome)

    def keep(self, outcome: Outcome) -> None:
        """Write an outcome down, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{outcome.batch.label}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(outcome))
        partial.replace(path)


def met(result: Any) -> Met:
    """Return one result of the library as we keep it."""
    config, told = result.expectation_config, result.result or {}
    names = config.meta or {}
    examples = told.get("partial_unexpected_index_list") or told.get("partial_unexpected_list") or ()
    return Met(
        name=str(names.get("name", config.type)),
        type=str(config.type),
        why=str(names.get("why", "")),
        passed=bool(result.success),
        checked=_count(told, "element_count"),
        unexpected=_count(told, "unexpected_count"),
        examples=tuple(plain(example) for example in examples),
        observed=plain(told.get("observed_value")),
        problem=_problem(result.exception_info or {}),
    )


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    return None if value is None else int(value)


def _problem(told: Mapping[str, Any]) -> str | None:
    """The first line of what went wrong where an expectation could not be asked.

    What Spark says of Java begins with a line that only says that Java was called.
    """
    messages = [told, *(one for one in told.values() if isinstance(one, Mapping))]
    found = next((one["exception_message"] for one in messages if one.get("raised_exception")), None)
    if found is None:
        return None
    lines = [line.removeprefix(": ") for line in str(found).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(CALLED)), "the library does not say why")


def plain(value: Any) -> Any:
    """A value as JSON has it; what it has no word for is text."""
    match value:
        case Mapping():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if value == value and abs(value) != float("inf") else str(value)
        case _:
            return str(value)
