"""What an audit says: for each check whether it holds, and the first places where it does not."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal

VerdictState = Literal["right", "wrong", "unproven"]
MAX_DIFFERENCES = 20
"""How many differences of one check are kept; the first is what matters, the others show how far it goes."""


@dataclass(frozen=True)
class AuditDifference:
    """Where something differs, and how."""

    location: str
    description: str

    def __str__(self) -> str:
        return f"{self.location}: {self.description}"


@dataclass(frozen=True)
class AuditVerdict:
    """What became of one check. `said` is what was compared, the first difference, or why nothing was."""

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
    def is_correct(self) -> bool:
        """Whether nothing was found to be wrong; what could not be proved is not found wrong."""
        return all(verdict.state != "wrong" for verdict in self.verdicts)

    @property
    def first_difference(self) -> AuditDifference | None:
        """The first place where anything differs, in the order of the checks."""
        return next((difference for verdict in self.verdicts for difference in verdict.differences), None)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**asdict(self), "right": self.is_correct}


def judge_differences(
    check: str, found_differences: Iterable[AuditDifference], success_text: str
) -> AuditVerdict:
    """Return the verdict on differences: wrong where there is one, and `fine` where there is none."""
    differences = tuple(islice(found_differences, MAX_DIFFERENCES))
    if not differences:
        return AuditVerdict(check, "right", success_text)
    return AuditVerdict(check, "wrong", str(differences[0]), differences)


def unproven_verdict(check: str, reason: str) -> AuditVerdict:
    """Return the verdict of a check that could not be made, and why."""
    return AuditVerdict(check, "unproven", reason)
