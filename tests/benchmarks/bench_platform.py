"""What the platform's own parts take: status, loading for Dagster, the sensor over many streams and batches.

Nothing needs to run for it. `python tests/benchmarks/bench_platform.py [streams] [batches of each]`.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dagster import AssetMaterialization, DagsterInstance, build_sensor_context
from rich.console import Console
from rich.table import Table

from penstock.core.clock import now_ms
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.engine.plan import Plan
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.database_engine import build_insert
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import batches
from penstock.platform.definitions.streams.batch_events import stream_asset_keys
from penstock.platform.definitions.streams.batch_sensor import (
    BatchReporter,
    ReportedStream,
    build_batch_sensor,
)

LOAD_DEFINITIONS = "from penstock.platform.definitions.location import defs; defs.resolve_asset_graph()"
DAY_MS = 86_400_000
PENSTOCK_COMMAND = str(Path(sys.executable).with_name("penstock"))


def median_seconds(what: Callable[[], object], rounds: int = 1) -> float:
    """Return the median time of some rounds."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        what()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def make_command(*words: str, home: Path) -> Callable[[], object]:
    """Return a function that runs a process; bytecode is cached, as after `make up`."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**variables, "PENSTOCK_HOME": str(home)}
    return lambda: subprocess.run(words, env=environment, capture_output=True, check=False)


def make_batch_rows(stream: str, first: int, count: int) -> Iterator[dict[str, object]]:
    """Build batch rows of the store."""
    account = PartitionAccount("sensors", 0, 0, 10, 10, 10, 0, 0, 0)
    sample = BatchRecord(stream, 0, 1, "data", 0, 0, (account,), {"early": 1}, 1, 0, {"fold": 1.0})
    for number in range(first, first + count):
        yield to_batch_row(replace(sample, batch_id=number, clock_ms=number))


def write_batches(store: ControlStore, streams: list[str], count: int) -> None:
    """Write batches for every stream."""
    with store.engine.begin() as connection:
        for stream in streams:
            connection.execute(build_insert(connection, batches), list(make_batch_rows(stream, 0, count)))


def run_sensor_tick(sensor: object, instance: DagsterInstance, cursor: str | None) -> tuple[int, str | None]:
    """Run a tick of the sensor and store its events; return their number and the next cursor."""
    with build_sensor_context(instance=instance, cursor=cursor) as context:
        result = sensor(context)  # type: ignore[operator]  # a sensor is called with its context
    events = getattr(result, "asset_events", [])
    for event in events:
        instance.report_runless_asset_event(event)
    told = sum(isinstance(event, AssetMaterialization) for event in events)
    return told, getattr(result, "cursor", cursor)


def report_running_streams(store: ControlStore, streams: list[str]) -> None:
    """Report all streams as running, as a host does."""
    now = now_ms()
    for stream in streams:
        store.set_desired_state(stream, DesiredRunState.RUNNING, now)
        store.acquire_lease(stream, "host", now, DAY_MS)
        store.report_health(StreamHealth(stream, StreamState.RUNNING, "", now))


def measure_sensor(folder: Path, store: ControlStore, names: list[str], count: int) -> tuple[float, float]:
    """Measure the longest tick over a whole history, and one over a new batch of each stream."""
    plan: Plan = catalog.load_plan(catalog.pipeline_names()[0])
    plans = [
        replace(plan, name=name, stages=rename_stage_tables(plan, number))
        for number, name in enumerate(names)
    ]
    told = [ReportedStream(each.name, stream_asset_keys(each)) for each in plans]
    sensor = build_batch_sensor(BatchReporter(told, lambda: store, lambda: 0, 0))
    with DagsterInstance.local_temp(str(folder)) as instance:
        whole, cursor = 0.0, None
        while True:
            began = time.perf_counter()
            told_now, cursor = run_sensor_tick(sensor, instance, cursor)
            whole = max(whole, time.perf_counter() - began)
            if not told_now:
                break
        for each in plans:
            store.record_batch(make_batch_record(each.name, count))
        began = time.perf_counter()
        with build_sensor_context(instance=instance) as context:
            sensor(context)
        one = time.perf_counter() - began
    return whole, one


def rename_stage_tables(plan: Plan, number: int) -> tuple[object, ...]:
    """Rename the tables of the plan's stages."""
    return tuple(
        replace(stage, sinks=tuple(replace(sink, table=f"{sink.table}_{number}") for sink in stage.sinks))
        for stage in plan.stages
    )


def make_batch_record(stream: str, number: int) -> BatchRecord:
    """Build one batch record."""
    account = PartitionAccount("sensors", 0, 0, 10, 10, 10, 0, 0, 0)
    return BatchRecord(stream, number, 1, "data", number, 0, (account,), {"early": 1}, 1, 0, {"fold": 1.0})


def main(streams: int = 100, count: int = 10_000) -> None:
    """Measure and print."""
    table = Table("what", "seconds", "at most")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        store, look = (
            open_control_store(f"sqlite:///{home}/control.db"),
            make_command(PENSTOCK_COMMAND, "status", home=home),
        )
        table.add_row("penstock status, nothing ever ran", f"{median_seconds(look, 7):.2f}", "0.5")
        # Those of the catalog have files, which status compares with the moment when the stream began.
        names = [*catalog.pipeline_names(), *(f"stream_{number}" for number in range(streams))][:streams]
        write_batches(store, names, count)
        report_running_streams(store, names)
        what = f"penstock status: {streams} streams run, {streams * count} batches"
        table.add_row(what, f"{median_seconds(look, 7):.2f}", "0.5")
        table.add_row(
            "penstock --help",
            f"{median_seconds(make_command(PENSTOCK_COMMAND, '--help', home=home), 5):.2f}",
            "",
        )
        loading = make_command(sys.executable, "-c", LOAD_DEFINITIONS, home=home)
        table.add_row("code location loads", f"{median_seconds(loading, 5):.2f}", "5")
        whole, one = measure_sensor(Path(scratch), store, names, count)
        store.close()
        table.add_row(
            f"sensor: {streams} streams, {streams * count} batches never told, longest tick",
            f"{whole:.2f}",
            "60",
        )
        table.add_row(f"sensor: {streams} streams, one new batch each", f"{one:.2f}", "2")
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
