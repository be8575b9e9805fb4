"""A small platform for Dagster: one topic, one stream, one table, and a control store."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster import DagsterInstance, Definitions

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.mean import Mean
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.ingestion.contracts import Contract, ContractField
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.definitions.asset_specs import AssetContext
from penstock.platform.definitions.catalog_definitions import build_catalog_definitions
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline

REPORT_MS = 30_000
START_MS = 1_700_000_010_000
"""The start of a report interval."""


def build_contract() -> Contract:
    fields = (
        ContractField("device", "string", "Which device."),
        ContractField("at", "timestamp", "When."),
        ContractField("temperature", "double", "Degrees Celsius.", required=False),
    )
    return Contract("sensors", "Readings.", fields, key="device", event_time="at")


def build_plan(name: str = "minute") -> Plan:
    columns = (Column("device", "string"), Column("at", "timestamp"), Column("temperature", "double"))
    outputs = (AggregateOutput("temperature", Mean("temperature")), AggregateOutput("readings", Count()))
    stage = Stage(
        name,
        ("sensors",),
        Fixed(60_000),
        outputs,
        key=("device",),
        sinks=(LatestValues(name), PaneLog(name)),
    )
    return Plan(name, (PlanSource("sensors", TopicOrigin("sensors"), columns, "at"),), (stage,))


@dataclass
class Clock:
    """A clock that tests advance."""

    at: int = START_MS

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield opened
    opened.close()


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder with the journal of actions."""
    return tmp_path / "home"


@pytest.fixture
def build_small_platform(store: ControlStore, clock: Clock, home: Path) -> Callable[..., Definitions]:
    def make_definitions(*plans: Plan, find_caught_up: Callable[[], Collection[str]] = tuple) -> Definitions:
        pipelines = [CatalogPipeline(plan, f"What {plan.name} is for.") for plan in plans or (build_plan(),)]
        context = AssetContext("/warehouse", "team:data", Path("/contracts"))
        return build_catalog_definitions(
            [build_contract()],
            pipelines,
            context,
            lambda: store,
            RunActions(home),
            clock,
            REPORT_MS,
            find_caught_up=find_caught_up,
        )

    return make_definitions


def build_batch(number: int, stream: str = "minute") -> BatchRecord:
    account = PartitionAccount("sensors", 0, 10 * number, 10 * number + 10, 10, 9, 1, 0, 0)
    return BatchRecord(
        stream,
        number,
        epoch=1,
        kind="data",
        clock_ms=START_MS + number,
        watermark_ms=START_MS - 5_000,
        accounts=(account,),
        panes={"early": 2, "on_time": 1},
        rows=3,
        lag_records=4,
        durations_ms={"process": 10.0, "commit": 20.0 + number},
        state_rows=3,
        state={stream: {"rows": 3, "bytes": 700}},
    )


@pytest.fixture
def make_batch() -> Callable[..., BatchRecord]:
    """Build the batch of a number."""
    return build_batch


@pytest.fixture
def make_plan() -> Callable[[str], Plan]:
    """Build a plan of a name."""
    return build_plan
