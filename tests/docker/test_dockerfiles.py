"""The Dockerfiles, line by line: pinned, locked, small, not root, and copying only what is there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
KNOWN = {"FROM", "RUN", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD", "WORKDIR"}
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;]+)", re.MULTILINE)


class Line(NamedTuple):
    instruction: str
    rest: str


def lines(file: Path) -> list[Line]:
    text = re.sub(r"^#.*\n", "", file.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    words = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [Line(first, " ".join(rest.split())) for first, rest in words]


def of(file: Path, instruction: str) -> list[str]:
    return [line.rest for line in lines(file) if line.instruction == instruction]


@pytest.fixture(params=FILES, ids=lambda file: file.name.partition(".")[0])
def file(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_there_is_one_for_each_role() -> None:
    assert [file.name.partition(".")[0] for file in FILES] == ["dagster", "host", "kafka", "spark"]


def test_only_instructions_are_used_that_have_no_surprises(file: Path) -> None:
    assert {line.instruction for line in lines(file)} <= KNOWN


def test_a_public_linter_finds_nothing() -> None:
    """Hadolint, which also reads what stands in each RUN as a shell would."""
    linter = str(Path(sys.executable).with_name("hadolint"))
    settings = ["--config", str(ROOT / "docker" / "hadolint.yaml")]
    said = subprocess.run([linter, *settings, *FILES], capture_output=True, text=True, check=False)
    assert (said.stdout + said.stderr, said.returncode) == ("", 0)


def test_the_image_below_is_named_to_its_last_digit(file: Path) -> None:
    for rest in of(file, "FROM"):
        assert re.match(r"^python:3\.11\.\d+-slim-[a-z]+( AS [a-z]+)?$", rest)


def test_it_does_not_run_as_root(file: Path) -> None:
    assert of(file, "USER") == ["10001:10001"]
    order = [line.instruction for line in lines(file)]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "RUN" not in order[order.index("USER") :]


def test_packages_come_from_a_lock_with_hashes(file: Path) -> None:
    """And from nothing else: a lock is whole, and pip refuses it where it works out again what a package needs."""
    installs = [run for run in of(file, "RUN") if "pip install" in run]
    assert installs
    assert all("--no-deps --require-hashes -r" in run and "--no-cache-dir" in run for run in installs)


def test_nothing_but_what_is_needed_stays(file: Path) -> None:
    for run in of(file, "RUN"):
        if "apt-get" in run:
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
    last = lines(file)
    final = last[max(i for i, line in enumerate(last) if line.instruction == "FROM") :]
    copied = [line.rest for line in final if line.instruction == "COPY"]
    assert copied == ["--from=build /opt/penstock /opt/penstock"]
    assert not [line for line in final if line.instruction == "RUN" and "pip" in line.rest]


def copies(file: Path) -> Iterator[str]:
    for rest in of(file, "COPY"):
        if not rest.startswith("--from"):
            yield from rest.split()[:-1]


def allowed(file: Path, path: str) -> bool:
    """Whether the ignore file beside it lets the path into the build: the last rule that fits decides."""
    kept = True
    for rule in Path(f"{file}.dockerignore").read_text("utf-8").split():
        keeps = rule.startswith("!")
        pattern = rule.removeprefix("!")
        if pattern == "**" or path == pattern or path.startswith(f"{pattern}/") or fnmatch(path, pattern):
            kept = keeps
    return kept


def test_everything_that_is_copied_is_there_and_not_ignored(file: Path) -> None:
    for source in copies(file):
        assert (ROOT / source).exists(), source
        assert allowed(file, source), source


def test_what_is_not_copied_never_reaches_the_build(file: Path) -> None:
    for path in (".penstock/control.db", ".git/config", "docker/secrets/control_store", "tests/conftest.py"):
        assert not allowed(file, path), path


def test_it_starts_a_program_and_no_shell(file: Path) -> None:
    for rest in (*of(file, "ENTRYPOINT"), *of(file, "CMD")):
        assert isinstance(json.loads(rest), list)


def test_no_secret_and_no_host_is_written_into_it(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"password=|token=|https?://", text, re.IGNORECASE)


def locked(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / name).read_text("utf-8")))


def test_the_brokers_lock_has_the_versions_of_the_whole() -> None:
    few = locked("docker/kafka.lock")
    assert few.keys() == {"confluent-kafka", "msgspec", "psutil"}
    assert few.items() <= locked("requirements.lock").items()


def test_dagsters_lock_has_the_versions_of_the_whole_and_nothing_of_spark() -> None:
    few = locked("docker/dagster.lock")
    assert few.items() <= locked("requirements.lock").items()
    assert few.keys() >= {"dagster-webserver", "dagster-postgres", "confluent-kafka", "msgspec", "psutil"}
    assert not few.keys() & {"pyspark", "delta-spark", "pyarrow", "pandas", "polars", "great-expectations"}


def test_what_a_task_of_fargate_writes_to_has_the_rights_that_the_image_gives_it() -> None:
    """A task's own volume is root's alone, unless the image declares a volume at that very path."""
    docker = ROOT / "docker"
    declared = {role: of(docker / f"{role}.Dockerfile", "VOLUME") for role in ("dagster", "host")}
    assert declared == {"dagster": ["/tmp"], "host": ['["/tmp", "/var/lib/penstock"]']}


def imports(file: Path, seen: set[Path]) -> Iterator[str]:
    """All modules that a file of ours loads, directly or through others of ours."""
    seen.add(file)
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            inner = ROOT / "infra" / Path(*name.split("."))
            found = [path for path in (inner.with_suffix(".py"), inner / "__init__.py") if path.is_file()]
            for path in found:
                if path not in seen:
                    yield from imports(path, seen)
            if not name.startswith("penstock"):
                yield name.partition(".")[0]


def test_a_broker_needs_no_package_that_its_image_lacks() -> None:
    needed = (
        set(imports(ROOT / "infra/penstock/infra/container/__main__.py", set())) - sys.stdlib_module_names
    )
    assert needed == {"confluent_kafka", "msgspec", "psutil"}
