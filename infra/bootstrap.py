"""Make a checkout ready to run: `python3 infra/bootstrap.py run|dev`; `make` calls it.

Runs on a bare Python; the rest is in penstock.infra.bootstrap and uses the standard library only. This file
is kept to what an older Python can read as well, so that it can say that it is too old.
"""

import os
import shutil
import sys

SUPPORTED = ((3, 11), (3, 12), (3, 13))


def another_python() -> str:
    """Return a Python of a supported version on PATH; nothing when there is none."""
    found = (shutil.which(f"python{major}.{minor}") for major, minor in SUPPORTED)
    return next((path for path in found if path), "")


def way_out() -> str:
    """Return what to do; where the system's own Python is too new, its package of that name brings no other."""
    if sys.version_info[:2] < SUPPORTED[0]:
        return "Install one, on Debian or Ubuntu with: apt-get install python3 python3-venv"
    return (
        "That one is newer than what the packages here were locked for. Install 3.13 beside it: with apt-get "
        "install python3.13 python3.13-venv where the system has it, else with `uv python install 3.13`, so that "
        "python3.13 is on PATH"
    )


def main() -> int:
    """Hand over to a Python that is new enough, or say that there is none."""
    if sys.version_info[:2] in SUPPORTED:
        from penstock.infra.bootstrap.main import main as bootstrap

        return bootstrap(sys.argv[1:])
    other = another_python()
    if other:
        os.execv(other, [other, *sys.argv])  # noqa: S606  a Python by its path, no shell
    major, minor = sys.version_info[:2]
    sys.stderr.write(
        f"Python 3.11, 3.12 or 3.13 is needed; {sys.executable} is {major}.{minor} and no other is on PATH. "
        + way_out()
        + "\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
