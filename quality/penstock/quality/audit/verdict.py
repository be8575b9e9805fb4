"""The result of an audit: the outcome of each check, with the first differences."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

MAX_DIFFERENCES = 20
"""The maximum number of differences per check. The first one matters; the others show the extent."""


class VerdictState(StrEnum):
    """The outcome of an audit check; `UNPROVEN` where the check could not run."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class AuditDifference:
    """A location, and how it differs."""

    location: str
    description: str

    def __str__(self) -> str:
        return f"{self.location}: {self.description}"


@dataclass(frozen=True)
class AuditVerdict:
    """The outcome of a check, with the name of the check."""

    check: str
    state: VerdictState
    summary: str
    differences: tuple[AuditDifference, ...] = ()


@dataclass(frozen=True)
class CheckOutcome:
    """What a check found.

    `summary` says what was compared, the first difference, or why nothing was compared.
    """

    state: VerdictState
    summary: str
    differences: tuple[AuditDifference, ...] = ()

    def as_verdict(self, check: str) -> AuditVerdict:
        """Return the verdict of the check with this name."""
        return AuditVerdict(check, self.state, self.summary, self.differences)


@dataclass(frozen=True)
class AuditReport:
    """The audit of a stream up to a batch."""

    stream: str
    upto: int
    verdicts: tuple[AuditVerdict, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed. Unproven checks do not count as failed."""
        return all(verdict.state != VerdictState.FAILED for verdict in self.verdicts)

    @property
    def first_difference(self) -> AuditDifference | None:
        """The first difference, in the order of the checks."""
        return next((difference for verdict in self.verdicts for difference in verdict.differences), None)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {**asdict(self), "passed": self.passed}


def judge_differences(found_differences: Iterable[AuditDifference], success_text: str) -> CheckOutcome:
    """Return an outcome: failed if there is a difference, else passed with `success_text`."""
    differences = tuple(islice(found_differences, MAX_DIFFERENCES))
    if not differences:
        return CheckOutcome(VerdictState.PASSED, success_text)
    return CheckOutcome(VerdictState.FAILED, str(differences[0]), differences)


def unproven_outcome(reason: str) -> CheckOutcome:
    """Return the outcome of a check that could not run, with the reason."""
    return CheckOutcome(VerdictState.UNPROVEN, reason)
