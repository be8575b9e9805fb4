"""The README's two commands, word for word, in a clean clone with ports of its own."""

import re
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from tests.platform.whole.expected import windows_of_table
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole

UP_SECONDS = 420.0
TEST_SECONDS = 300.0

NARROWED = (
    "tests/platform/settings/test_loader.py tests/infra/test_local_broker.py -k 'settings or interrupted'"
)
"""`make test` runs every test, this one too: in the clone it is told to run a few of them."""


@pytest.fixture
def clone(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """What somebody gets who clones the repository: what is committed, and nothing else."""
    if shutil.which("git") is None or not (pytestconfig.rootpath / ".git").exists():
        pytest.skip("this checkout is no git repository, so it cannot be cloned")
    folder = tmp_path / "penstock"
    subprocess.run(["git", "clone", "-q", str(pytestconfig.rootpath), str(folder)], check=True)
    return folder


def commands_of(readme: str) -> list[str]:
    """The commands in the README's first block of shell."""
    block = re.search(r"^```(?:sh|bash|console)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert block, "the README has no block of shell"
    lines = [line.removeprefix("$ ").split("#")[0].strip() for line in block[1].splitlines()]
    return [line for line in lines if line.startswith("make ")]


def run(command: str, folder: Path, environment: dict[str, str], seconds: float) -> str:
    """Run a line of the README as a shell would, and return what it printed."""
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    said = done.stderr[-3000:] + done.stdout[-3000:]
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {said}"
    return done.stdout


def add_the_stream_of(readme: str, clone: Path, environment: dict[str, str], stack: ScratchStack) -> None:
    """Do what "Adding a stream" says, with its file and its lines as they are printed."""
    section = readme.split("### Adding a stream")[1].split("\n## ")[0]
    (file,) = re.findall(r"`([\w/]+\.yaml)`:", section)
    yaml, shell = (
        dedent(block) for block in re.findall(r"```(?:yaml|sh)\n(.*?)^ *```", section, re.DOTALL | re.M)
    )
    (clone / file).write_text(yaml, "utf-8")
    explain, start, show = shell.strip().splitlines()
    assert "site" in run(explain, clone, environment, 60)
    run(start, clone, environment, 60)
    there = stack.warehouse / "latest" / show.split()[-1] / "_delta_log"
    until(there.exists, 60, "the new stream's table")
    until(lambda: "warmest" in run(show, clone, environment, 60), 60, "the new stream's first rows")


@pytest.mark.timeout(900)
def test_the_readmes_two_commands_work_in_a_clean_clone(clone: Path, jars: Path) -> None:
    up, test = commands_of((clone / "README.md").read_text("utf-8"))[:2]
    assert (up, test) == ("make up", "make test")
    (clone / ".penstock").mkdir()
    (clone / ".penstock" / "jars").symlink_to(jars)  # a hundred megabytes that are here already
    stack = ScratchStack(clone / ".penstock", jars)
    # The clone's own environment, not that of the tests: theirs must not be found through the shell.
    foreign = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_ADDOPTS", "PENSTOCK_HOME")
    environment = {name: value for name, value in stack.environment.items() if name not in foreign}
    try:
        said = run(up, clone, environment, UP_SECONDS)
        assert stack.ui in said
        assert windows_of_table(stack.table("latest", "sensor_minute"))
        add_the_stream_of((clone / "README.md").read_text("utf-8"), clone, environment, stack)
    finally:
        run("make down", clone, environment, 60)
    tested = run(test, clone, {**environment, "PYTEST_ADDOPTS": NARROWED}, TEST_SECONDS)
    assert re.search(r"\d+ passed", tested)
