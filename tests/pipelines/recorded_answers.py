"""Recorded answers of other systems, in a folder beside the checkout. Tests are skipped where it is absent."""

import json
from pathlib import Path
from typing import Any

import pytest

ORACLES = Path(__file__).parents[3] / "shared" / "oracles"


def recorded_file(name: str) -> Path:
    """Return the path of a file of recorded answers. Skip the test, with the name, where it is absent."""
    path = ORACLES / name
    if not path.exists():
        pytest.skip(f"recorded answers {name} are not at ../shared/oracles")
    return path


def load_recorded_document(name: str) -> Any:
    """Return the document in a file of recorded answers."""
    return json.loads(recorded_file(name).read_text(encoding="utf-8"))
