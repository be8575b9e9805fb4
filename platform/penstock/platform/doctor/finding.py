"""One thing that was looked at."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.errors import PenstockError


@dataclass(frozen=True)
class DoctorFinding:
    """What was looked at, whether it is as it should be, and what was seen; a fault says the way out."""

    check: str
    ok: bool
    detail: str


def run_check(check_name: str, check: Callable[[], str]) -> DoctorFinding:
    """Turn a Penstock error into a finding; its text already says what to do."""
    try:
        return DoctorFinding(check_name, True, check())
    except PenstockError as error:
        return DoctorFinding(check_name, False, str(error))
