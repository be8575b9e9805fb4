"""The compose file, validated."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.docker.compose_model import Compose

DOCKER = Path(__file__).parents[2] / "docker"


@pytest.fixture(scope="session")
def compose() -> Compose:
    return Compose.model_validate(yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8")))
