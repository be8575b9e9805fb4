"""Where recorded answers lie: beside the checkout, where the team keeps them; tests without them are skipped."""

import json
from pathlib import Path
from typing import Any

import pytest

ORACLES = Path(__file__).parents[3] / "shared" / "oracles"


def oracle(name: str) -> Path:
    """The path of a file of recorded answers; skips the test, by its name, where there is none."""
    path = ORACLES / name
    if not path.exists():
        pytest.skip(f"recorded answers {name} are not at ../shared/oracles")
    return path


def oracle_document(name: str) -> Any:
    """The document in a file of recorded answers."""
    return json.loads(oracle(name).read_text(encoding="utf-8"))
