"""Hosts on a stage, one of them seen from outside."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.platform.host.staging import Stage

from penstock.platform.control import open_control_store
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.observed_control import ObservedControl


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    store = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield Stage(store)
    store.close()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def seen(stage: Stage, registry: CollectorRegistry) -> Stage:
    """The same, with a host that is seen from outside."""
    return Stage(stage.store, control=ObservedControl(stage.store, HostMetrics(registry)))
