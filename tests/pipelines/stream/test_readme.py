"""What the README shows is what works."""

import re
from pathlib import Path
from typing import Any

import yaml

from penstock import conformance, stream
from penstock.conformance import ReferenceEngine, run_cases

FOLDER = Path(stream.__file__).parent


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_two_pipelines_of_the_readme_are_one() -> None:
    (python,), (text,) = blocks(FOLDER / "README.md", "python"), blocks(FOLDER / "README.md", "yaml")
    names: dict[str, Any] = {name: getattr(stream, name) for name in stream.__all__}
    exec(python, names)
    assert names["sensor_minute"].plan == stream.from_document(yaml.safe_load(text)).plan


def test_every_word_is_in_the_readme() -> None:
    told = set(re.findall(r"`(\w+)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    assert set(stream.__all__) - told == {"Pipeline", "from_document", "from_yaml"}


def test_the_case_of_the_readme_comes_out_as_it_says() -> None:
    (text,) = blocks(Path(conformance.__file__).parent / "README.md", "yaml")
    (verdict,) = run_cases(yaml.safe_load(text), ReferenceEngine())
    assert verdict.is_ok, (verdict.expected, verdict.actual)
