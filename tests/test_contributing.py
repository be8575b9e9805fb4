"""Make, the commit hooks and CI run the same checks."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_commit_hooks_are_the_checks_of_make() -> None:
    recipe = re.search(r"^check:.*?\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    tools = re.findall(r"\$\(BIN\)/([\w-]+(?: format --check| check| -m [\w.]+)?)", recipe[1])
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    assert [hook["entry"].removeprefix(".venv/bin/") for hook in hooks] == tools


def test_the_workflow_runs_the_ci_script() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert any(".ci/run" in step for step in steps)


def test_the_changelog_has_a_section_for_the_version_of_the_package() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version is not None
    assert re.search(
        rf"^## {re.escape(version[1])} - \d{{4}}-\d\d-\d\d$",
        (ROOT / "CHANGELOG.md").read_text("utf-8"),
        re.MULTILINE,
    )
