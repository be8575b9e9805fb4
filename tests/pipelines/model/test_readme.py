"""What the README shows is what works."""

import re
from pathlib import Path
from typing import Any

import yaml

from penstock.pipelines import model
from penstock.pipelines.transcripts import ReferenceEngine, run_nodes

FOLDER = Path(model.__file__).parent


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_two_pipelines_of_the_readme_are_one() -> None:
    (python,), (text,) = blocks(FOLDER / "README.md", "python"), blocks(FOLDER / "README.md", "yaml")
    names: dict[str, Any] = {name: getattr(model, name) for name in model.__all__}
    exec(python, names)
    assert names["sensor_minute"].plan == model.from_document(yaml.safe_load(text)).plan


def test_every_word_is_in_the_readme() -> None:
    told = set(re.findall(r"`(\w+)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    assert set(model.__all__) - told == {"Pipeline", "from_document", "from_yaml"}


def test_the_case_of_the_readme_comes_out_as_it_says() -> None:
    (text,) = blocks(FOLDER.parent / "transcripts" / "README.md", "yaml")
    (verdict,) = run_nodes(yaml.safe_load(text), ReferenceEngine())
    assert verdict.ok, (verdict.expected, verdict.got)
