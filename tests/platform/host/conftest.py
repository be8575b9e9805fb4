"""Hosts under test, with and without an observed control store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.platform.host.host_harness import HostHarness

from penstock.platform.control import open_control_store
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.observed_control import ObservedControl


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[HostHarness]:
    store = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield HostHarness(store)
    store.close()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def observed(harness: HostHarness, registry: CollectorRegistry) -> HostHarness:
    """A host harness whose control store is observed by metrics."""
    return HostHarness(harness.store, control=ObservedControl(harness.store, HostMetrics(registry)))
