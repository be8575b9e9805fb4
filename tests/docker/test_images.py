"""The instructions of the Dockerfiles, run without containers: each RUN in a folder, then the command.

System packages and users are left out, because they would change this machine. `requirements.lock` is not installed
again: this environment has its packages. Smaller locks are installed.
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
from tests.docker.test_dockerfiles import FILES, ROOT, Line, parse_lines
from tests.patience import PATIENCE_S

from penstock.infra.broker import new_kafka_id, wait_for_broker
from penstock.infra.ports import find_free_ports

pytestmark = pytest.mark.whole

SYSTEM_COMMAND = re.compile(r"^(apt-get|rm -rf /var/lib/apt|useradd|install --directory)")
MAIN_LOCK_INSTALL = re.compile(r"pip install .*-r requirements\.lock$")


class Image:
    """The folders of an image, below a folder of this machine."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.folder = folder
        (folder / "opt" / "penstock").mkdir(parents=True)
        (folder / "build").mkdir()
        (folder / "opt" / "penstock" / "jars").symlink_to(jars)  # their hashes are still checked
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def localize(self, text: str) -> str:
        """Replace paths of the image by those of this machine."""
        return re.sub(r"(?<![\w.])/(opt/penstock|build)", rf"{self.folder}/\1", text)

    def run_instruction(self, line: Line) -> None:
        match line.instruction:
            case "COPY" if not line.rest.startswith("--from"):
                *sources, target = line.rest.split()
                for source in sources:
                    self.copy(
                        ROOT / source,
                        self.folder / "build" if target == "./" else Path(self.localize(target)),
                    )
            case "RUN":
                for command in line.rest.split(" && "):
                    self.run(command)
            case "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", line.rest):
                    self.environment[name] = self.localize(value).replace("$PATH", self.environment["PATH"])

    def copy(self, source: Path, target: Path) -> None:
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy(source, target)

    def run(self, command: str) -> None:
        if SYSTEM_COMMAND.search(command):
            return
        if MAIN_LOCK_INSTALL.search(command):
            environment = Path(self.localize(command.split()[0])).parents[1]
            (packages,) = environment.glob("lib/python3*/site-packages")
            # Folders in a .pth file are not searched for .pth files, so that the copied code is used.
            (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
            return
        command_line = [
            "bash",
            "-c",
            self.localize(command).replace("python -m venv", f"{sys.executable} -m venv"),
        ]
        result = subprocess.run(
            command_line,
            cwd=self.folder / "build",
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"

    def program(self, command_line: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )


BuildImage = Callable[[str], Image]


@pytest.fixture(scope="module")
def build_image(
    tmp_path_factory: pytest.TempPathFactory,
    jar_directory: Path,
    spark_jar_paths: list[Path],
    kafka_jar_paths: list[Path],
) -> BuildImage:
    """Build the image of a role once."""

    @cache
    def build(role: str) -> Image:
        image = Image(tmp_path_factory.mktemp(role), jar_directory)
        for line in parse_lines(ROOT / "docker" / f"{role}.Dockerfile"):
            image.run_instruction(line)
        return image

    return build


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.partition(".")[0])
def test_the_command_of_an_image_runs(file: Path, build_image: BuildImage) -> None:
    image = build_image(file.name.partition(".")[0])
    instructions = {line.instruction: line.rest for line in parse_lines(file)}
    result = image.program([*json.loads(instructions["ENTRYPOINT"]), *json.loads(instructions["CMD"])])
    assert result.returncode == 0, result.stderr
    assert "usage: python -m penstock.infra.container" in result.stdout
    location = image.program(["python", "-c", "import penstock.infra.jars as it; print(it.__file__)"])
    assert location.stdout.startswith(str(image.folder)), "the code is not that of the image"


@pytest.mark.parametrize("program", ["dagster-webserver", "dagster-daemon"])
def test_dagster_programs_start_with_the_packages_of_their_image(
    build_image: BuildImage, program: str
) -> None:
    """The packages of the lock are really installed: a missing one fails."""
    result = build_image("dagster").program(
        ["python", "-m", "penstock.infra.container", "exec", program, "--version"]
    )
    assert (result.returncode, result.stderr) == (0, "")
    missing = build_image("dagster").program(["python", "-c", "import dagster_postgres, pyspark"])
    assert "No module named 'pyspark'" in missing.stderr


def test_the_command_of_operators_is_on_the_path_of_the_image(build_image: BuildImage) -> None:
    """As in `docker compose exec host penstock status`."""
    result = build_image("host").program(["penstock", "status", "--help"])
    assert (result.returncode, result.stderr) == (0, "")


def test_a_broker_runs_with_the_packages_of_its_image(build_image: BuildImage, tmp_path: Path) -> None:
    image = build_image("kafka")
    port, controller = find_free_ports(2)
    location = ["--address", f"127.0.0.1:{port}", "--voters", f"1@127.0.0.1:{controller}"]
    data_options = [
        "--data",
        str(tmp_path / "data"),
        "--jars",
        str(image.folder / "opt" / "penstock" / "jars"),
    ]
    command_line = [
        "python",
        "-m",
        "penstock.infra.container",
        "broker",
        "--node",
        "1",
        "--cluster",
        new_kafka_id(),
    ]
    with subprocess.Popen(
        [*command_line, *location, *data_options],
        env=image.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as broker:
        try:
            wait_for_broker(f"127.0.0.1:{port}", 60, is_alive=lambda: broker.poll() is None)
        finally:
            broker.terminate()
            broker.wait(PATIENCE_S)
