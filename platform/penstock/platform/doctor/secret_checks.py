"""Checks that each secret that a setting names can be read, and that others cannot read its file."""

import stat
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

from penstock.core.errors import SecretError
from penstock.core.secret import ENV_PREFIX, FILE_PREFIX, read_secret
from penstock.platform.doctor.finding import DoctorFinding
from penstock.platform.settings import Settings
from penstock.platform.settings.naming import iter_secret_settings

OTHERS_CAN_READ = stat.S_IROTH


def check_secrets(settings: Settings) -> DoctorFinding:
    """Read each secret as its user does."""
    references = {name: _read_setting(settings, name) for name in iter_secret_settings()}
    named = {name: reference for name, reference in references.items() if reference}
    problems = [problem for name, reference in named.items() for problem in _find_problems(name, reference)]
    if problems:
        return DoctorFinding("secrets", False, "; ".join(problems))
    return DoctorFinding("secrets", True, f"{len(named)} can be read" if named else "no setting names one")


def _read_setting(settings: Settings, name: str) -> str:
    return str(reduce(getattr, name.split("."), settings))


def _find_problems(name: str, reference: str) -> Iterator[str]:
    try:
        read_secret(reference, f"The secret of {name}")
    except SecretError as error:
        yield str(error)
        return
    if not reference.startswith(ENV_PREFIX):
        file = Path(reference.removeprefix(FILE_PREFIX)).expanduser()
        if file.stat().st_mode & OTHERS_CAN_READ:
            yield f"{file}, which {name} names, can be read by every user. `chmod 600 {file}` closes it."
