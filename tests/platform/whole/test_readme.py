"""The commands of the README in a clean clone with its own ports."""

import re
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.expected_windows import read_windows
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

pytestmark = pytest.mark.whole

UP_SECONDS = 420.0
TEST_SECONDS = 300.0

SELECTED_TESTS = (
    "tests/platform/settings/test_loader.py tests/infra/test_local_broker.py -k 'settings or interrupted'"
)
"""`make test` would run every test, with this one: the clone runs a few of them."""


@pytest.fixture
def clone(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """A clone with the committed files only."""
    if shutil.which("git") is None or not (pytestconfig.rootpath / ".git").exists():
        pytest.skip("this checkout is no git repository, so it cannot be cloned")
    folder = tmp_path / "penstock"
    subprocess.run(["git", "clone", "-q", str(pytestconfig.rootpath), str(folder)], check=True)
    return folder


def list_commands(readme: str) -> list[str]:
    """Return the commands of the first shell block of the README."""
    block = re.search(r"^```(?:sh|bash|console)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert block, "the README has no block of shell"
    lines = [line.removeprefix("$ ").split("#")[0].strip() for line in block[1].splitlines()]
    return [line for line in lines if line.startswith("make ")]


def run(command: str, folder: Path, environment: dict[str, str], seconds: float) -> str:
    """Run a line of the README in a shell, and return its output."""
    shell = ["bash", "-c", command]
    result = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    output = result.stderr[-3000:] + result.stdout[-3000:]
    assert result.returncode == 0, f"{command} ended with {result.returncode}: {output}"
    return result.stdout


def add_stream(readme: str, clone: Path, environment: dict[str, str], stack: ScratchStack) -> None:
    """Follow "Adding a stream" with its file and its commands."""
    section = readme.split("### Adding a stream")[1].split("\n## ")[0]
    (file,) = re.findall(r"`([\w/]+\.yaml)`:", section)
    yaml, shell = (
        dedent(block) for block in re.findall(r"```(?:yaml|sh)\n(.*?)^ *```", section, re.DOTALL | re.M)
    )
    (clone / file).write_text(yaml, "utf-8")
    explain, try_out, start, show = shell.strip().splitlines()
    assert "site" in run(explain, clone, environment, 60)
    assert "warmest" in run(try_out, clone, environment, 60)
    run(start, clone, environment, 60)
    table_log = stack.warehouse / "latest" / show.split()[-1] / "_delta_log"
    poll_until(table_log.exists, PATIENCE_S, "the new stream's table")
    poll_until(
        lambda: "warmest" in run(show, clone, environment, 60), PATIENCE_S, "the new stream's first rows"
    )


@pytest.mark.timeout(900)
def test_the_commands_of_the_readme_work_in_a_clean_clone(clone: Path, jars: Path) -> None:
    up, test = list_commands((clone / "README.md").read_text("utf-8"))[:2]
    assert (up, test) == ("make up", "make test")
    (clone / ".penstock").mkdir()
    (clone / ".penstock" / "jars").symlink_to(jars)  # already downloaded, a hundred megabytes
    stack = ScratchStack(clone / ".penstock", jars)
    # The clone uses its own environment: remove variables that lead to that of the tests.
    foreign = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_ADDOPTS", "PENSTOCK_HOME")
    environment = {name: value for name, value in stack.environment.items() if name not in foreign}
    try:
        output = run(up, clone, environment, UP_SECONDS)
        assert stack.ui in output
        assert read_windows(stack.table("latest", "sensor_minute"))
        add_stream((clone / "README.md").read_text("utf-8"), clone, environment, stack)
    finally:
        run("make down", clone, environment, 60)
    test_output = run(test, clone, {**environment, "PYTEST_ADDOPTS": SELECTED_TESTS}, TEST_SECONDS)
    assert re.search(r"\d+ passed", test_output)
