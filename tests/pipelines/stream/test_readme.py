"""The examples of the READMEs work."""

import re
from pathlib import Path
from typing import Any

import yaml

from penstock import conformance, stream
from penstock.conformance import ReferenceEngine, run_cases

FOLDER = Path(stream.__file__).parent


def find_code_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_python_and_yaml_examples_give_one_plan() -> None:
    (python,), (text,) = (
        find_code_blocks(FOLDER / "README.md", "python"),
        find_code_blocks(FOLDER / "README.md", "yaml"),
    )
    names: dict[str, Any] = {name: getattr(stream, name) for name in stream.__all__}
    exec(python, names)
    assert names["sensor_minute"].plan == stream.from_document(yaml.safe_load(text)).plan


def test_the_readme_names_every_public_function() -> None:
    documented = set(re.findall(r"`(\w+)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    assert set(stream.__all__) - documented == {"Pipeline", "from_document", "from_sql", "from_yaml"}


def test_the_example_case_passes() -> None:
    (text,) = find_code_blocks(Path(conformance.__file__).parent / "README.md", "yaml")
    (verdict,) = run_cases(yaml.safe_load(text), ReferenceEngine())
    assert verdict.is_ok, (verdict.expected, verdict.actual)
