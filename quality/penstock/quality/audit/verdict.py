"""The result of an audit: a verdict per check, with the first differences."""

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
    """The result of one check.

    `summary` says what was compared, the first difference, or why nothing was compared.
    """

    check: str
    state: VerdictState
    summary: str
    differences: tuple[AuditDifference, ...] = ()


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


def judge_differences(
    check: str, found_differences: Iterable[AuditDifference], success_text: str
) -> AuditVerdict:
    """Return a verdict: failed if there is a difference, else passed with `success_text`."""
    differences = tuple(islice(found_differences, MAX_DIFFERENCES))
    if not differences:
        return AuditVerdict(check, VerdictState.PASSED, success_text)
    return AuditVerdict(check, VerdictState.FAILED, str(differences[0]), differences)


def unproven_verdict(check: str, reason: str) -> AuditVerdict:
    """Return the verdict of a check that could not run, with the reason."""
    return AuditVerdict(check, VerdictState.UNPROVEN, reason)
