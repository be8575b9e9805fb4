"""A home with pipelines and topics of its own: its folders, and the platform's commands over it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S

import penstock.engine
import penstock.ingestion
from penstock.infra.local_broker import LocalBroker
from penstock.infra.parent_bound import parent_bound_command

CATALOG_SOURCES = {"pipelines": "catalog", "ingestion": "topics"}
"""The packages that have a folder `catalog`, and the folder of the home that takes its place."""


@dataclass(frozen=True)
class GoldenHome:
    """The folder `root` has settings, pipelines, topics and records of a user, and the platform's home folder.

    `code` is a folder for the source tree: links to this checkout, with the pipelines and topics of the home.
    """

    root: Path
    code: Path
    broker: LocalBroker
    jars: Path

    def __post_init__(self) -> None:
        (self.root / ".penstock").mkdir(exist_ok=True)
        _link_code(self.root, self.code / "penstock")

    @property
    def warehouse(self) -> Path:
        return self.root / ".penstock" / "warehouse"

    @property
    def control_url(self) -> str:
        return f"sqlite:///{self.root}/.penstock/control.db"

    @property
    def client(self) -> dict[str, str]:
        """The settings of Kafka clients."""
        return {"bootstrap.servers": self.broker.bootstrap, "log_level": "0"}

    def penstock(self, *words: str) -> None:
        """Run a command of the platform over this home; it must succeed."""
        command = [sys.executable, "-m", "penstock.platform.cli", *words]
        done = subprocess.run(
            command, env=self._environment, cwd=self.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"penstock {' '.join(words)}: {done.stdout}{done.stderr}"

    @contextmanager
    def run_host(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the stream host, and drain it at the end."""
        command = parent_bound_command([sys.executable, "-m", "penstock.platform.cli", "host", "run"])
        with self._host_log.open("wb") as log:
            host = subprocess.Popen(command, env=self._environment, cwd=self.root, stdout=log, stderr=log)
        try:
            yield host
            host.terminate()
            assert host.wait(PATIENCE_S) == 0, self.read_host_log()
        finally:
            host.kill()
            host.wait()

    def read_host_log(self) -> str:
        """Return the end of the host's log."""
        return self._host_log.read_text("utf-8")[-3000:]

    @property
    def _host_log(self) -> Path:
        return self.code / "host.log"

    @property
    def _environment(self) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        paths = (str(self.code), str(self.root), os.environ.get("PYTHONPATH", ""))
        return {
            **others,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PENSTOCK_ROOT": str(self.root),
            "PENSTOCK_JARS": str(self.jars),
            "PENSTOCK_KAFKA__BOOTSTRAP": self.broker.bootstrap,
        }


def _link_code(root: Path, packages: Path) -> None:
    """Make a source tree of links to this checkout, whose catalogs are those of a home."""
    packages.mkdir(parents=True)
    for part_of_platform in (penstock.engine, penstock.ingestion):
        folder = Path(str(part_of_platform.__file__)).parents[1]
        for source in (path for path in folder.iterdir() if path.is_dir()):
            if source.name in CATALOG_SOURCES:
                _link_package(source, packages / source.name, root / CATALOG_SOURCES[source.name])
            else:
                (packages / source.name).symlink_to(source)


def _link_package(source: Path, package: Path, catalog: Path) -> None:
    package.mkdir()
    for module in source.iterdir():
        if module.name not in ("catalog", "__pycache__"):
            (package / module.name).symlink_to(module)
    shutil.copytree(catalog, package / "catalog")
    loader = source / "catalog" / "__init__.py"
    if loader.exists():
        (package / "catalog" / loader.name).symlink_to(loader)
