"""What the Dockerfiles run, run outside an engine: each RUN in a folder of its own, then the image's own command.

Left out, because they would change this machine: packages of the system, and the user. `requirements.lock` is not
installed again: packages are those of this environment, which was made from that lock, hash by hash.
Smaller locks are installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.docker.test_dockerfiles import FILES, ROOT, Line, lines

from penstock.infra.broker import new_kafka_id, wait_for_broker
from penstock.infra.ports import find_free_ports

pytestmark = [pytest.mark.whole, pytest.mark.timeout(200)]

OF_THE_SYSTEM = re.compile(r"^(apt-get|rm -rf /var/lib/apt|useradd|install --directory)")
OF_THE_LOCK = re.compile(r"pip install .*-r requirements\.lock$")


class Image:
    """The folders that an image would have, below one of this machine's."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.folder = folder
        (folder / "opt" / "penstock").mkdir(parents=True)
        (folder / "build").mkdir()
        (folder / "opt" / "penstock" / "jars").symlink_to(jars)  # that they are as locked is still looked at
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def here(self, text: str) -> str:
        """A word of a Dockerfile, with its places on this machine."""
        return re.sub(r"(?<![\w.])/(opt/penstock|build)", rf"{self.folder}/\1", text)

    def carry_out(self, line: Line) -> None:
        match line.instruction:
            case "COPY" if not line.rest.startswith("--from"):
                *sources, target = line.rest.split()
                for source in sources:
                    self.copy(
                        ROOT / source, self.folder / "build" if target == "./" else Path(self.here(target))
                    )
            case "RUN":
                for command in line.rest.split(" && "):
                    self.run(command)
            case "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", line.rest):
                    self.environment[name] = self.here(value).replace("$PATH", self.environment["PATH"])

    def copy(self, source: Path, target: Path) -> None:
        leave = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=leave)
        else:
            shutil.copy(source, target)

    def run(self, command: str) -> None:
        if OF_THE_SYSTEM.search(command):
            return
        if OF_THE_LOCK.search(command):
            environment = Path(self.here(command.split()[0])).parents[1]
            (packages,) = environment.glob("lib/python3*/site-packages")
            # What a .pth file names is not searched for .pth files: our own code is found where it was copied to.
            (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
            return
        words = ["bash", "-c", self.here(command).replace("python -m venv", f"{sys.executable} -m venv")]
        done = subprocess.run(
            words, cwd=self.folder / "build", env=os.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def program(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )


Built = Callable[[str], Image]


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory,
    jar_directory: Path,
    spark_jar_paths: list[Path],
    kafka_jar_paths: list[Path],
) -> Built:
    """The image of a role, made once."""

    @cache
    def build(role: str) -> Image:
        image = Image(tmp_path_factory.mktemp(role), jar_directory)
        for line in lines(ROOT / "docker" / f"{role}.Dockerfile"):
            image.carry_out(line)
        return image

    return build


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.partition(".")[0])
def test_what_it_runs_makes_what_its_command_needs(file: Path, built: Built) -> None:
    image = built(file.name.partition(".")[0])
    last = {line.instruction: line.rest for line in lines(file)}
    said = image.program([*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])])
    assert said.returncode == 0, said.stderr
    assert "usage: python -m penstock.infra.container" in said.stdout
    where = image.program(["python", "-c", "import penstock.infra.jars as it; print(it.__file__)"])
    assert where.stdout.startswith(str(image.folder)), "the code is not the image's"


@pytest.mark.parametrize("program", ["dagster-webserver", "dagster-daemon"])
def test_dagsters_programs_start_on_what_their_image_holds(built: Built, program: str) -> None:
    """Its packages are really installed, from its own lock: a program that wants another would say so."""
    said = built("dagster").program(
        ["python", "-m", "penstock.infra.container", "exec", program, "--version"]
    )
    assert (said.returncode, said.stderr) == (0, "")
    missing = built("dagster").program(["python", "-c", "import dagster_postgres, pyspark"])
    assert "No module named 'pyspark'" in missing.stderr


def test_a_broker_runs_on_what_its_image_holds(built: Built, tmp_path: Path) -> None:
    image = built("kafka")
    port, controller = find_free_ports(2)
    where = ["--address", f"127.0.0.1:{port}", "--voters", f"1@127.0.0.1:{controller}"]
    kept = ["--data", str(tmp_path / "data"), "--jars", str(image.folder / "opt" / "penstock" / "jars")]
    words = ["python", "-m", "penstock.infra.container", "broker", "--node", "1", "--cluster", new_kafka_id()]
    with subprocess.Popen(
        [*words, *where, *kept], env=image.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as broker:
        try:
            wait_for_broker(f"127.0.0.1:{port}", 60, is_alive=lambda: broker.poll() is None)
        finally:
            broker.terminate()
            broker.wait(30)
