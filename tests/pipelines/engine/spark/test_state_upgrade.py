"""A stream with a changed definition starts, is refused, or migrates its state."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import build_plan, make_readings, query_duckdb

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.errors import PlanChangedError
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.stages import Plan
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
def runner(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> StreamRunner:
    topic = f"upgraded{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)


def change_aggregates(plan: Plan) -> Plan:
    """Remove the maximum, and add a minimum that starts empty."""
    outputs = [output for output in plan.only_stage.aggregates if output.name != "most"]
    stage = replace(plan.only_stage, aggregates=(*outputs, AggregateOutput("least", min_("temperature"))))
    return replace(plan, stages=(stage,))


def test_a_migrated_state_keeps_exact_values(runner: StreamRunner) -> None:
    topic, folder = runner.plan.sources[0].name, runner.folder / "stream"
    first, second = make_readings(200, seed=1), make_readings(100, seed=2)
    send(runner.broker, topic, first)
    runner.run_until_read(200)
    runner.plan = change_aggregates(runner.plan)
    with pytest.raises(
        PlanChangedError, match=r"least was absent and is min\(temperature\).*plan-upgrade by_"
    ):
        runner.start()
    upgrade = assess_upgrade(folder, runner.plan, ["least"])
    assert upgrade is not None
    assert upgrade.upgrade_class is UpgradeClass.MIGRATABLE
    plan = runner.plan
    graph = compile_graph(plan, FieldTypeResolver(runner.session).resolve_plan(plan))
    migration = migrate_state(folder, plan, graph, ["least"], runner.epoch)
    assert migrate_state(folder, plan, graph, ["least"], runner.epoch) == migration
    send(runner.broker, topic, second)
    runner.run_until_read(300)
    measures = "count(1), count(temperature), sum(temperature)"
    query = (
        f'SELECT device, "at" - "at" % 10000 AS w, {measures}, min(temperature) FILTER (again) '
        "FROM sent GROUP BY ALL ORDER BY ALL"
    )
    sent = [{**each, "again": again} for again, part in ((False, first), (True, second)) for each in part]
    columns = "device, epoch_ms(window_start), n, measured, total, least"
    found = query_duckdb(
        f"SELECT {columns} FROM found ORDER BY ALL", found=runner.table(f"latest/{runner.plan.name}")
    )
    expected = query_duckdb(query, sent=pa.Table.from_pylist(sent))
    updated_windows = {(each["device"], each["at"] // 10_000 * 10_000) for each in second}
    assert [row for row in expected if row[:2] in updated_windows] == [
        row for row in found if row[:2] in updated_windows
    ]
    assert len(found) == len(expected), "windows without new records are still there"


def test_a_compatible_change_starts_and_is_stored(runner: StreamRunner) -> None:
    topic, folder = runner.plan.sources[0].name, runner.folder / "stream"
    send(runner.broker, topic, make_readings(50, seed=3))
    runner.run_until_read(50)
    stage = replace(runner.plan.only_stage, lateness=1_000)
    runner.plan = replace(runner.plan, stages=(stage,))
    send(runner.broker, topic, make_readings(50, seed=4))
    runner.run_until_read(100)
    assert read_stored_plan(folder) == runner.plan
