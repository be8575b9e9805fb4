"""Known vulnerabilities of what is shipped: each package and jar of the locks, asked for in the database of OSV.

`python -m penstock.infra.vulnerabilities` prints them, and fails if there is one that is not accepted. It asks only
the database that PENSTOCK_OSV_URL names: no list of packages is sent unasked, and a check without it
depends on the checkout alone. Without an answer nothing is scanned; it says so, and does not fail.
"""

import os
import re
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal

import msgspec

from penstock.infra.jars import read_jar_lock

PACKAGE_LOCK = Path(__file__).parents[3] / "requirements-dev.lock"
ACCEPTED_FILE = Path(__file__).with_name("accepted_vulnerabilities.toml")
DATABASE_VARIABLE = "PENSTOCK_OSV_URL"
"""The address of the database: https://api.osv.dev, which has the advisories of PyPI and Maven, or of a mirror."""
REQUEST_TIMEOUT_S = 20.0
MAX_QUERIES = 1_000
"""The most queries that the database takes in a request."""


class DatabaseUnavailableError(Exception):
    """The database of vulnerabilities does not answer."""


@dataclass(frozen=True)
class Dependency:
    """A locked package or jar, with its name in the database."""

    ecosystem: Literal["PyPI", "Maven"]
    name: str
    version: str


class _Finding(msgspec.Struct):
    id: str


class _Result(msgspec.Struct):
    vulns: list[_Finding] = []


class _Answer(msgspec.Struct):
    results: list[_Result]


def list_dependencies() -> list[Dependency]:
    """Return every package and jar of the locks."""
    packages = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([\w.]+)", PACKAGE_LOCK.read_text("utf-8"), re.M)
    jars = {jar.coordinates for jar in read_jar_lock()}
    return [
        *(Dependency("PyPI", name, version) for name, version in packages),
        *(Dependency("Maven", f"{jar.group}:{jar.artifact}", jar.version) for jar in sorted(jars, key=str)),
    ]


def find_vulnerabilities(dependencies: Sequence[Dependency], url: str) -> Iterator[tuple[Dependency, str]]:
    """Yield the id of each known vulnerability. Raises DatabaseUnavailableError."""
    for start in range(0, len(dependencies), MAX_QUERIES):
        part = dependencies[start : start + MAX_QUERIES]
        for dependency, result in zip(part, _query(part, url), strict=True):
            yield from ((dependency, finding.id) for finding in result.vulns)


def read_accepted() -> Mapping[str, str]:
    """Return the ids of accepted vulnerabilities, each with the reason."""
    accepted: Mapping[str, str] = tomllib.loads(ACCEPTED_FILE.read_text("utf-8"))
    return accepted


def main(url: str) -> int:
    """Print the vulnerabilities; return 1 if one is not accepted. Without an address nothing is scanned."""
    if not url:
        sys.stdout.write(
            f"dependency scan skipped: {DATABASE_VARIABLE} is not set; the public one is https://api.osv.dev\n"
        )
        return 0
    dependencies, accepted = list_dependencies(), read_accepted()
    try:
        found = list(find_vulnerabilities(dependencies, url))
    except DatabaseUnavailableError as error:
        sys.stdout.write(f"dependency scan skipped: {error}\n")
        return 0
    refused = [(dependency, name) for dependency, name in found if name not in accepted]
    for dependency, name in refused:
        sys.stderr.write(
            f"{dependency.name} {dependency.version}: https://osv.dev/vulnerability/{name}. Update the lock, or "
            f"write why it does no harm into {ACCEPTED_FILE.name}\n"
        )
    sys.stdout.write(
        f"dependency scan: {len(dependencies)} packages and jars, {len(refused)} with vulnerabilities that are not "
        "accepted\n"
    )
    return 1 if refused else 0


def _query(dependencies: Sequence[Dependency], url: str) -> Sequence[_Result]:
    queries = [
        {
            "package": {"name": dependency.name, "ecosystem": dependency.ecosystem},
            "version": dependency.version,
        }
        for dependency in dependencies
    ]
    request = urllib.request.Request(  # noqa: S310  # an address of the person who runs the check
        f"{url}/v1/querybatch",
        msgspec.json.encode({"queries": queries}),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310
            results = msgspec.json.decode(answer.read(), type=_Answer).results
    except (OSError, HTTPException, msgspec.DecodeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise DatabaseUnavailableError(f"the database at {url} does not answer ({reason})") from error
    if len(results) != len(dependencies):
        raise DatabaseUnavailableError(
            f"the database at {url} answered {len(results)} of {len(dependencies)} queries"
        )
    return results


if __name__ == "__main__":
    sys.exit(main(os.environ.get(DATABASE_VARIABLE, "")))
