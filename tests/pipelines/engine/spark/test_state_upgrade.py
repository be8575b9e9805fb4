"""A stream whose definition was changed: what starts, what is refused, and a state that was rewritten."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import Running, send
from tests.pipelines.engine.spark.test_live_stream import asked, plan_over, readings

from penstock.engine.errors import PlanChangedError
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan import AggregateOutput, Plan
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.upgrade.state_migration import migrate_state
from penstock.engine.upgrade.stored_plan import assess_upgrade, read_stored_plan
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed, min_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def running(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> Running:
    topic = f"upgraded{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return Running(plan_over(topic, fixed("10 seconds")), spark, broker, tmp_path)


def changed(plan: Plan) -> Plan:
    """Without the greatest, and with the least, which counts from now on."""
    outputs = [output for output in plan.only_stage.aggregates if output.name != "most"]
    stage = replace(plan.only_stage, aggregates=(*outputs, AggregateOutput("least", min_("temperature"))))
    return replace(plan, stages=(stage,))


def test_a_state_is_rewritten_and_what_is_kept_stays_exact(running: Running) -> None:
    topic, folder = running.plan.sources[0].name, running.folder / "stream"
    first, second = readings(200, seed=1), readings(100, seed=2)
    send(running.broker, topic, first)
    running.until_read(200)
    running.plan = changed(running.plan)
    with pytest.raises(PlanChangedError, match=r"least was absent and is Min.*plan-upgrade by_"):
        running.start()
    upgrade = assess_upgrade(folder, running.plan, ["least"])
    assert upgrade is not None
    assert upgrade.upgrade_class is UpgradeClass.MIGRATABLE
    plan = running.plan
    graph = compile_graph(plan, FieldTypeResolver(running.session).resolve_plan(plan))
    done = migrate_state(folder, plan, graph, ["least"], running.epoch)
    assert migrate_state(folder, plan, graph, ["least"], running.epoch) == done
    send(running.broker, topic, second)
    running.until_read(300)
    measures = "count(1), count(temperature), sum(temperature)"
    query = (
        f'SELECT device, "at" - "at" % 10000 AS w, {measures}, min(temperature) FILTER (again) '
        "FROM sent GROUP BY ALL ORDER BY ALL"
    )
    sent = [{**each, "again": again} for again, part in ((False, first), (True, second)) for each in part]
    columns = "device, epoch_ms(window_start), n, measured, total, least"
    found = asked(
        f"SELECT {columns} FROM found ORDER BY ALL", found=running.table(f"latest/{running.plan.name}")
    )
    everything = asked(query, sent=pa.Table.from_pylist(sent))
    touched = {(each["device"], each["at"] // 10_000 * 10_000) for each in second}
    assert [row for row in everything if row[:2] in touched] == [row for row in found if row[:2] in touched]
    assert len(found) == len(everything), "windows that nothing was added to are still there"


def test_a_compatible_change_starts_by_itself_and_is_written_down(running: Running) -> None:
    topic, folder = running.plan.sources[0].name, running.folder / "stream"
    send(running.broker, topic, readings(50, seed=3))
    running.until_read(50)
    stage = replace(running.plan.only_stage, lateness=1_000)
    running.plan = replace(running.plan, stages=(stage,))
    send(running.broker, topic, readings(50, seed=4))
    running.until_read(100)
    assert read_stored_plan(folder) == running.plan
