"""One demonstration: topics fed, the pipeline run batch by batch at the pace of its input, and what it told."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.topics import contents, ensure_topics
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.catalog import demonstration
from penstock.pipelines.demonstration import Demo
from penstock.pipelines.pictures import Told
from penstock.pipelines.plan import LatestValues, PaneLog, Plan, Stage, Window
from penstock.pipelines.plan.windows import SameWindows
from penstock.pipelines.spark.bounded import BoundedConfig, StoredRun
from penstock.pipelines.spark.stored.held import Held
from penstock.pipelines.spark.stored.together import StoredTogether
from penstock.pipelines.spark.stored.topic import StoredTopic
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.legible import legible
from penstock.pipelines.tables.places import folder_of
from penstock.platform.demo.checks import Checked, check_tables
from penstock.platform.demo.feeding import Delivered, Place, deliver
from penstock.platform.demo.sendings import Sending, sendings
from penstock.platform.errors import DemoError
from penstock.platform.streams import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Ran:
    """What came of a demonstration: everything that its page and its picture say."""

    plan: Plan
    demo: Demo
    told: Told
    warehouse: Path
    outcomes: Sequence[Outcome]
    checked: Sequence[Checked]

    @property
    def result(self) -> DeltaTable:
        """The table that a reader of results would open."""
        sinks = [sink for sink in self.told.stage.sinks if isinstance(sink, LatestValues)]
        sink = (*sinks, *self.told.stage.sinks)[0]
        return delta_table(self.warehouse / folder_of(sink) / sink.table)


def run_demo(name: str, session: "SparkSession", bootstrap: str, folder: Path, tell: Tell) -> Ran:
    """Feed and run a pipeline of the catalog, in a folder whose former content goes."""
    return run_plan(plan_of(name), demonstration(name), session, bootstrap, folder, tell)


def run_plan(
    plan: Plan, demo: Demo, session: "SparkSession", bootstrap: str, folder: Path, tell: Tell
) -> Ran:
    """Do the same with a plan and an input that are given."""
    shutil.rmtree(folder, ignore_errors=True)
    shown = demo.stage or plan.name
    plan = logged(plan, shown)
    contracts = [load_contract(topic_of(source)) for source in plan.sources]
    sent = {each.topic: sendings(each.topic, demo, len(contracts)) for each in contracts}
    delivered = fed(bootstrap, contracts, sent, folder, tell)
    tell("reading the topics")
    stored = held(session, bootstrap, delivered)
    outcomes: list[Outcome] = []
    config = BoundedConfig(folder / "stream", folder / "warehouse")
    run = StoredRun(plan, session, config, outcomes.append)
    times = [one.at for each in sent.values() for one in each]
    began = min(times) - min(times) % demo.step_ms
    ended = live(run, delivered, stored, range(began, max(times) + 1, demo.step_ms), tell)
    stored.rows.unpersist()
    stage = next(stage for stage in plan.stages if stage.name == shown)
    told = Told(
        stage=stage,
        window=windows_of(plan, stage),
        panes=rows(folder / "warehouse" / "panes" / log_of(stage)),
        late=rows(folder / "warehouse" / "late" / plan.name) if shown == plan.name else [],
        records=[one for contract in contracts for one in records(contract, sent[contract.topic])],
        watermark=[
            (each.watermark.value, each.clock)
            for each in outcomes
            if BEFORE_ALL < each.watermark.value < NEVER
        ],
        began=began,
        ended=ended,
    )
    tell("checking the tables")
    checked = tuple(check_tables(session, plan, folder / "warehouse"))
    return Ran(plan, demo, told, folder / "warehouse", outcomes, checked)


def live(run: StoredRun, delivered: Delivered, stored: Held, steps: range, tell: Tell) -> int:
    """Run a batch for each step of the clock, and one that ends the input; return the clock of that one."""
    for number, moment in enumerate(steps):
        tell(f"batch {number + 1} of {len(steps)}")
        clock = moment + steps.step
        spans = delivered.ranges(moment, clock)
        if any(span.end > span.start for span in spans):
            run.batch(number, clock, spans, stored, None, {})
        else:
            run.tick(clock)
    ended = steps[-1] + 2 * steps.step
    run.tick(ended, NEVER)
    return ended


def logged(plan: Plan, name: str) -> Plan:
    """Return the plan with a log of all panes of a stage, which is what a picture is made of."""
    found = [stage for stage in plan.stages if stage.name == name]
    if not found:
        known = ", ".join(stage.name for stage in plan.stages)
        raise DemoError(f"{plan.name} has no stage {name!r} to show; there are: {known}")
    stages = tuple(
        replace(stage, sinks=(*stage.sinks, PaneLog(stage.name)))
        if stage in found and not any(isinstance(sink, PaneLog) for sink in stage.sinks)
        else stage
        for stage in plan.stages
    )
    return replace(plan, stages=stages)


def windows_of(plan: Plan, stage: Stage) -> Window:
    """Return where the panes of a stage are, also where it shares the windows of another."""
    while isinstance(stage.window, SameWindows):
        stage = plan.feeding(stage)[0]
    return stage.window


def log_of(stage: Stage) -> str:
    """Return the name of a stage's log of panes."""
    return next(sink.table for sink in stage.sinks if isinstance(sink, PaneLog))


def fed(
    bootstrap: str,
    contracts: Sequence[Contract],
    sent: dict[str, Sequence[Sending]],
    folder: Path,
    tell: Tell,
) -> Delivered:
    """Make the topics, and send to each what is to be sent."""
    ensure_topics(bootstrap, contracts)
    times: dict[Place, list[int]] = {}
    before = {
        (topic.name, each.partition): each.end for topic in contents(bootstrap) for each in topic.partitions
    }
    for contract in contracts:
        own = {place: end for place, end in before.items() if place[0] == contract.topic}
        ledger = folder / "producers" / contract.topic
        times |= deliver(bootstrap, contract, sent[contract.topic], own, ledger, tell)
    return Delivered(times, before)


def held(session: "SparkSession", bootstrap: str, delivered: Delivered) -> Held:
    """Read what was delivered, and keep it."""
    topics = sorted({topic for topic, _ in delivered.times})
    spans = delivered.ranges(0, NEVER)
    stored = StoredTogether([StoredTopic(session, topic, bootstrap) for topic in topics])
    return Held(stored.records(spans).cache(), spans)


def records(contract: Contract, sent: Sequence[Sending]) -> list[tuple[int, int, dict[str, object]]]:
    """Return each record with its event time and the moment of its sending."""
    time = contract.event_time or ""
    made = [(msgspec.to_builtins(sending.record), sending.at) for sending in sent]
    return [(fields[time], at, fields) for fields, at in made]


def rows(table: Path) -> list[dict[str, object]]:
    """Return the rows of a table, in the order of the batches; none where it was never written."""
    if not is_table(table):
        return []
    found = delta_table(table).to_pyarrow_table()
    order = pc.sort_indices(found, [("batch_id", "ascending")])
    ordered: list[dict[str, object]] = legible(found.take(order)).to_pylist()
    return ordered
