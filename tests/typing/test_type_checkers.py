"""Type checkers accept the valid definitions of the examples, and refuse each wrong word on its line."""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = Path(__file__).parent / "examples"
VALID, WRONG = EXAMPLES / "valid_pipelines.py", EXAMPLES / "wrong_words.py"
PYRIGHT = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
"""A package of pyright that brings its own node; it checks here as pyright does."""

ErrorsByLine = dict[int, list[str]]


def read_expected_errors() -> dict[int, str]:
    """Return the part of an error that each wrong line expects."""
    lines = WRONG.read_text("utf-8").splitlines()
    return {
        number: line.partition("# expect: ")[2]
        for number, line in enumerate(lines, start=1)
        if "# expect: " in line
    }


@pytest.mark.skipif(PYRIGHT is None, reason="basedpyright is not installed; it is in the group dev")
def test_pyright_accepts_valid_definitions_and_refuses_wrong_words() -> None:
    arguments = [str(PYRIGHT), "-p", str(EXAMPLES), "--pythonpath", sys.executable, "--outputjson"]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    errors: dict[str, ErrorsByLine] = defaultdict(lambda: defaultdict(list))
    for diagnostic in json.loads(process.stdout)["generalDiagnostics"]:
        line = diagnostic["range"]["start"]["line"] + 1
        errors[Path(diagnostic["file"]).name][line].append(diagnostic["message"])
    assert not errors[VALID.name]
    expected = read_expected_errors()
    assert errors[WRONG.name].keys() == expected.keys()
    for line, part in expected.items():
        assert any(part in message for message in errors[WRONG.name][line]), errors[WRONG.name][line]


def test_mypy_accepts_valid_definitions_and_refuses_wrong_words() -> None:
    arguments = [sys.executable, "-m", "mypy", "--no-warn-unreachable", str(VALID), str(WRONG)]
    process = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    places = re.findall(r"^(\S+\.py):(\d+): error: ", process.stdout, re.MULTILINE)
    assert {Path(file).name for file, _ in places} == {WRONG.name}, process.stdout
    assert {int(line) for _, line in places} == read_expected_errors().keys(), process.stdout
