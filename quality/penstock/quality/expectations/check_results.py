"""What came of checking a batch: kept as a file, so that the next batch begins after it and a page can show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from penstock.quality.expectations.check_batches import CheckedBatch
from penstock.quality.expectations.suite import BatchCut

JAVA_CALL_PREFIX = "An error occurred while calling"


@dataclass(frozen=True)
class ExpectationResult:
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
class BatchCheckResult:
    """A batch of a table, when it was checked, and what came of each expectation."""

    subject: str
    batch: CheckedBatch
    at_ms: int
    results: tuple[ExpectationResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return all(result.passed for result in self.results)


class CheckResultStore:
    """The outcomes of one table, in a folder: a file for each batch."""

    def __init__(self, home: Path, subject: str) -> None:
        self.folder = home / "quality" / subject.replace("/", "-")

    def find_newest(self, cut: BatchCut | None = None) -> BatchCheckResult | None:
        """Return the last batch that was checked, of one kind or of any."""
        return next(self.read_all() if cut is None else self._read_cut(cut), None)

    def read_all(self) -> Iterator[BatchCheckResult]:
        """Yield what is kept, from young to old; batches of another kind come as their last one does."""
        results_by_cut = [
            (newest, older)
            for older in map(self._read_cut, get_args(BatchCut))
            if (newest := next(older, None))
        ]
        for newest, older in sorted(results_by_cut, key=lambda kind: kind[0].at_ms, reverse=True):
            yield newest
            yield from older

    def _read_cut(self, cut: BatchCut) -> Iterator[BatchCheckResult]:
        for path in sorted(self.folder.glob(f"{cut}-*.json"), reverse=True):
            yield msgspec.json.decode(path.read_bytes(), type=BatchCheckResult)

    def save(self, outcome: BatchCheckResult) -> None:
        """Write an outcome down, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{outcome.batch.label}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(outcome))
        partial.replace(path)


def to_expectation_result(result: Any) -> ExpectationResult:
    """Return one result of the library as we keep it."""
    config, measured = result.expectation_config, result.result or {}
    metadata = config.meta or {}
    examples = measured.get("partial_unexpected_index_list") or measured.get("partial_unexpected_list") or ()
    return ExpectationResult(
        name=str(metadata.get("name", config.type)),
        type=str(config.type),
        why=str(metadata.get("why", "")),
        passed=bool(result.success),
        checked=_int_or_none(measured, "element_count"),
        unexpected=_int_or_none(measured, "unexpected_count"),
        examples=tuple(to_json_value(example) for example in examples),
        observed=to_json_value(measured.get("observed_value")),
        problem=_first_problem_line(result.exception_info or {}),
    )


def _int_or_none(measured: Mapping[str, Any], name: str) -> int | None:
    value = measured.get(name)
    return None if value is None else int(value)


def _first_problem_line(exception_info: Mapping[str, Any]) -> str | None:
    """The first line of what went wrong where an expectation could not be asked.

    What Spark says of Java begins with a line that only says that Java was called.
    """
    messages = [
        exception_info,
        *(exception for exception in exception_info.values() if isinstance(exception, Mapping)),
    ]
    message = next(
        (exception["exception_message"] for exception in messages if exception.get("raised_exception")), None
    )
    if message is None:
        return None
    lines = [line.removeprefix(": ") for line in str(message).splitlines() if line.strip()]
    return next(
        (line for line in lines if not line.startswith(JAVA_CALL_PREFIX)), "the library does not say why"
    )


def to_json_value(value: Any) -> Any:
    """A value as JSON has it; what it has no word for is text."""
    match value:
        case Mapping():
            return {str(name): to_json_value(part) for name, part in value.items()}
        case list() | tuple():
            return [to_json_value(part) for part in value]
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if value == value and abs(value) != float("inf") else str(value)
        case _:
            return str(value)
