"""The instructions of the Dockerfiles: pinned images, locked packages, no root user, existing sources."""

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
KNOWN_INSTRUCTIONS = {
    "FROM",
    "RUN",
    "COPY",
    "ENV",
    "USER",
    "VOLUME",
    "EXPOSE",
    "ENTRYPOINT",
    "CMD",
    "WORKDIR",
}
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;]+)", re.MULTILINE)


class Line(NamedTuple):
    instruction: str
    rest: str


def parse_lines(file: Path) -> list[Line]:
    text = re.sub(r"^#.*\n", "", file.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    words = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [Line(first, " ".join(rest.split())) for first, rest in words]


def find_instructions(file: Path, instruction: str) -> list[str]:
    return [line.rest for line in parse_lines(file) if line.instruction == instruction]


@pytest.fixture(params=FILES, ids=lambda file: file.name.partition(".")[0])
def file(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_there_is_a_dockerfile_for_each_role() -> None:
    assert [file.name.partition(".")[0] for file in FILES] == ["dagster", "host", "kafka", "spark"]


def test_only_known_instructions_are_used(file: Path) -> None:
    assert {line.instruction for line in parse_lines(file)} <= KNOWN_INSTRUCTIONS


def test_the_linter_finds_nothing() -> None:
    """Hadolint also checks the shell code of each RUN."""
    linter = str(Path(sys.executable).with_name("hadolint"))
    settings = ["--config", str(ROOT / "docker" / "hadolint.yaml")]
    result = subprocess.run([linter, *settings, *FILES], capture_output=True, text=True, check=False)
    assert (result.stdout + result.stderr, result.returncode) == ("", 0)


def test_the_base_image_has_a_full_version(file: Path) -> None:
    for rest in find_instructions(file, "FROM"):
        assert re.match(r"^python:3\.11\.\d+-slim-[a-z]+( AS [a-z]+)?$", rest)


def test_the_image_does_not_run_as_root(file: Path) -> None:
    assert find_instructions(file, "USER") == ["10001:10001"]
    order = [line.instruction for line in parse_lines(file)]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert "RUN" not in order[order.index("USER") :]


def test_packages_come_from_a_lock_with_hashes(file: Path) -> None:
    """Packages come only from the lock, which pip does not resolve again."""
    installs = [run for run in find_instructions(file, "RUN") if "pip install" in run]
    assert installs
    assert all("--no-deps --require-hashes -r" in run and "--no-cache-dir" in run for run in installs)


def test_the_final_image_has_only_what_it_needs(file: Path) -> None:
    for run in find_instructions(file, "RUN"):
        if "apt-get" in run:
            assert "--no-install-recommends" in run
            assert "rm -rf /var/lib/apt/lists/*" in run
    all_lines = parse_lines(file)
    final = all_lines[max(i for i, line in enumerate(all_lines) if line.instruction == "FROM") :]
    copied = [line.rest for line in final if line.instruction == "COPY"]
    assert copied == ["--from=build /opt/penstock /opt/penstock"]
    assert not [line for line in final if line.instruction == "RUN" and "pip" in line.rest]


def find_copied_sources(file: Path) -> Iterator[str]:
    for rest in find_instructions(file, "COPY"):
        if not rest.startswith("--from"):
            yield from rest.split()[:-1]


def is_in_build_context(file: Path, path: str) -> bool:
    """Whether the ignore file lets the path into the build: the last matching rule decides."""
    is_included = True
    for rule in Path(f"{file}.dockerignore").read_text("utf-8").split():
        includes = rule.startswith("!")
        pattern = rule.removeprefix("!")
        if pattern == "**" or path == pattern or path.startswith(f"{pattern}/") or fnmatch(path, pattern):
            is_included = includes
    return is_included


def test_copied_sources_exist_and_are_not_ignored(file: Path) -> None:
    for source in find_copied_sources(file):
        assert (ROOT / source).exists(), source
        assert is_in_build_context(file, source), source


def test_other_files_are_not_in_the_build_context(file: Path) -> None:
    for path in (".penstock/control.db", ".git/config", "docker/secrets/control_store", "tests/conftest.py"):
        assert not is_in_build_context(file, path), path


def test_the_image_starts_a_program_without_a_shell(file: Path) -> None:
    for rest in (*find_instructions(file, "ENTRYPOINT"), *find_instructions(file, "CMD")):
        assert isinstance(json.loads(rest), list)


def test_a_dockerfile_contains_no_secret_and_no_host(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"password=|token=|https?://", text, re.IGNORECASE)


def read_locked_versions(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / name).read_text("utf-8")))


def test_the_kafka_lock_has_the_versions_of_the_main_lock() -> None:
    locked_versions = read_locked_versions("docker/kafka.lock")
    assert locked_versions.keys() == {"confluent-kafka", "msgspec", "psutil"}
    assert locked_versions.items() <= read_locked_versions("requirements.lock").items()


def test_the_dagster_lock_has_the_versions_of_the_main_lock_without_spark() -> None:
    locked_versions = read_locked_versions("docker/dagster.lock")
    assert locked_versions.items() <= read_locked_versions("requirements.lock").items()
    assert locked_versions.keys() >= {
        "dagster-webserver",
        "dagster-postgres",
        "confluent-kafka",
        "msgspec",
        "psutil",
    }
    assert not locked_versions.keys() & {
        "pyspark",
        "delta-spark",
        "pyarrow",
        "pandas",
        "polars",
        "great-expectations",
    }


def test_writable_paths_of_fargate_tasks_are_declared_as_volumes() -> None:
    """A volume of a task belongs to root, unless the image declares a volume at the same path."""
    docker = ROOT / "docker"
    declared = {
        role: find_instructions(docker / f"{role}.Dockerfile", "VOLUME") for role in ("dagster", "host")
    }
    assert declared == {"dagster": ["/tmp"], "host": ['["/tmp", "/var/lib/penstock"]']}


def find_imports(file: Path, seen: set[Path]) -> Iterator[str]:
    """Yield all packages that a file imports, directly or through other files of the project."""
    seen.add(file)
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            inner = ROOT / "infra" / Path(*name.split("."))
            module_files = [
                path for path in (inner.with_suffix(".py"), inner / "__init__.py") if path.is_file()
            ]
            for path in module_files:
                if path not in seen:
                    yield from find_imports(path, seen)
            if not name.startswith("penstock"):
                yield name.partition(".")[0]


def test_the_kafka_image_has_every_package_of_a_broker() -> None:
    needed = (
        set(find_imports(ROOT / "infra/penstock/infra/container/__main__.py", set()))
        - sys.stdlib_module_names
    )
    assert needed == {"confluent_kafka", "msgspec", "psutil"}
