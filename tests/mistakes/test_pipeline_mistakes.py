"""The usual mistakes in a pipeline: each ends in a message that says what is wrong, where, and how to fix it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.catalogs import use_test_catalog

from penstock.engine.errors import DefinitionError
from penstock.pipelines import catalog

DOCUMENT = yaml.safe_load((Path(__file__).parent / "pipeline_mistakes.yaml").read_text("utf-8"))
VALID: dict[str, str] = DOCUMENT["valid"]
MISTAKES: list[dict[str, Any]] = DOCUMENT["mistakes"]
MAX_MESSAGE_LENGTH = 230


def apply_mistake(mistake: dict[str, Any]) -> str:
    """Return the text of the file with the mistake."""
    if "text" in mistake:
        return str(mistake["text"])
    valid_text = VALID.get(mistake["file"], VALID["orders.py"])
    if "write" not in mistake:
        return valid_text
    assert mistake["instead_of"] in valid_text
    return valid_text.replace(mistake["instead_of"], mistake["write"], 1)


@pytest.mark.parametrize("file", VALID)
def test_the_file_without_a_mistake_is_valid(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use_test_catalog(tmp_path, monkeypatch) as write:
        write(file, VALID[file])
        assert catalog.load_plan("orders").name == "orders"


@pytest.mark.parametrize("mistake", MISTAKES, ids=[str(mistake["mistake"]) for mistake in MISTAKES])
def test_a_mistake_has_this_message(
    mistake: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with use_test_catalog(tmp_path, monkeypatch) as write:
        file = write(mistake["file"], apply_mistake(mistake))
        with pytest.raises(DefinitionError) as raised:
            catalog.load_plan(file.stem)
    assert str(raised.value).splitlines() == mistake["messages"]
    assert all(len(message) <= MAX_MESSAGE_LENGTH for message in mistake["messages"])
