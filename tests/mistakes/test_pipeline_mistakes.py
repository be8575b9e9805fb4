"""The usual mistakes in a pipeline: each ends in a message that says what is wrong, where, and how to fix it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.catalogs import WriteCatalogFile, use_test_catalog

from penstock.engine.errors import DefinitionError
from penstock.platform.services.stream_catalog import load_plan

DOCUMENT = yaml.safe_load((Path(__file__).parent / "pipeline_mistakes.yaml").read_text("utf-8"))
VALID: dict[str, str] = DOCUMENT["valid"]
OTHER_FILES: dict[str, str] = DOCUMENT["beside"]
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


def write_files(write: WriteCatalogFile, files: dict[str, str]) -> None:
    """Write files of the catalog beside the others."""
    for name, text in {**OTHER_FILES, **files}.items():
        write(name, text)


@pytest.mark.parametrize("file", VALID)
def test_the_file_without_a_mistake_is_valid(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with use_test_catalog(tmp_path, monkeypatch) as write:
        write_files(write, {file: VALID[file]})
        assert load_plan("orders").name == "orders"


@pytest.mark.parametrize("mistake", MISTAKES, ids=[str(mistake["mistake"]) for mistake in MISTAKES])
def test_a_mistake_has_this_message(
    mistake: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with use_test_catalog(tmp_path, monkeypatch) as write:
        write_files(write, {mistake["file"]: apply_mistake(mistake)})
        with pytest.raises(DefinitionError) as raised:
            load_plan(Path(mistake["file"]).stem)
    assert str(raised.value).splitlines() == mistake["messages"]
    assert all(len(message) <= MAX_MESSAGE_LENGTH for message in mistake["messages"])
