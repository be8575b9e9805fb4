"""Results of checked batches, stored as one file per batch for the next check and for the report page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from penstock.core.files import write_atomically
from penstock.quality.expectations.check_batches import CheckedBatch
from penstock.quality.expectations.suite import BatchCut

JAVA_CALL_PREFIX = "An error occurred while calling"


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one expectation for a batch: counts of checked and unexpected rows, and examples.

    `observed` is the measured value of an expectation about all rows together. `rows` is the file with the
    unexpected rows, for expectations about single rows.
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
    """The results of all expectations for a batch of a table."""

    subject: str
    batch: CheckedBatch
    at_ms: int
    results: tuple[ExpectationResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation passed."""
        return all(result.passed for result in self.results)


class CheckResultStore:
    """The stored results of one table: a folder with one file per batch."""

    def __init__(self, home: Path, subject: str) -> None:
        self.folder = home / "quality" / subject.replace("/", "-")

    def find_newest(self, cut: BatchCut | None = None) -> BatchCheckResult | None:
        """Return the result of the last checked batch, of one cut or of any."""
        return next(self.read_all() if cut is None else self._read_cut(cut), None)

    def read_all(self) -> Iterator[BatchCheckResult]:
        """Yield stored results, newest first. Results of different cuts are ordered by the newest of each cut."""
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
        """Write a result atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{outcome.batch.label}.json"
        write_atomically(path, msgspec.json.encode(outcome))


def to_expectation_result(result: Any) -> ExpectationResult:
    """Convert a result of the library."""
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
    """Return the first useful line of an exception, if the expectation raised one.

    Py4J errors start with a line that only names the Java call; that line is skipped.
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
        (line for line in lines if not line.startswith(JAVA_CALL_PREFIX)),
        "Great Expectations gives no reason",
    )


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON types; other values become text."""
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
