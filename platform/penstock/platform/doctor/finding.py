"""The result of one check of the installation."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.errors import PenstockError


@dataclass(frozen=True)
class DoctorFinding:
    """What was checked, whether it is correct, and the details; the details of a fault include the fix."""

    check: str
    ok: bool
    detail: str


def run_check(check_name: str, check: Callable[[], str]) -> DoctorFinding:
    """Run a check and turn a Penstock error into a finding; the error's text already contains the fix."""
    try:
        return DoctorFinding(check_name, True, check())
    except PenstockError as error:
        return DoctorFinding(check_name, False, str(error))
