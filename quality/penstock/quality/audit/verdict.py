"""What an audit says: for each check whether it holds, and the first places where it does not."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal

State = Literal["right", "wrong", "unproven"]
SHOWN = 20
"""How many differences of one check are kept; the first is what matters, the others show how far it goes."""


@dataclass(frozen=True)
class Difference:
    """Where something differs, and how."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    """What became of one check. `said` is what was compared, the first difference, or why nothing was."""

    check: str
    state: State
    said: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Report:
    """The audit of a stream up to a batch."""

    stream: str
    upto: int
    verdicts: tuple[Verdict, ...]

    @property
    def right(self) -> bool:
        """Whether nothing was found to be wrong; what could not be proved is not found wrong."""
        return all(verdict.state != "wrong" for verdict in self.verdicts)

    @property
    def first(self) -> Difference | None:
        """The first place where anything differs, in the order of the checks."""
        return next((found for verdict in self.verdicts for found in verdict.differences), None)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**asdict(self), "right": self.right}


def judged(check: str, found: Iterable[Difference], fine: str) -> Verdict:
    """Return the verdict on differences: wrong where there is one, and `fine` where there is none."""
    differences = tuple(islice(found, SHOWN))
    if not differences:
        return Verdict(check, "right", fine)
    return Verdict(check, "wrong", str(differences[0]), differences)


def unproven(check: str, why: str) -> Verdict:
    """Return the verdict of a check that could not be made, and why."""
    return Verdict(check, "unproven", why)
