"""Measures `penstock status`, the load of the code location, and the batch sensor with many streams and batches.

`python tests/benchmarks/bench_platform.py [STREAMS] [BATCHES_PER_STREAM]`.
"""

import argparse
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
from penstock.engine.plan.stages import Plan
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


def median_seconds(action: Callable[[], object], rounds: int) -> float:
    """Return the median time of an action."""
    durations = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        durations.append(time.perf_counter() - started)
    return statistics.median(durations)


def make_command(*command: str, home: Path) -> Callable[[], object]:
    """Return a function that runs a command with cached bytecode, as after `make up`."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**variables, "PENSTOCK_HOME": str(home)}
    return lambda: subprocess.run(command, env=environment, capture_output=True, check=False)


def make_batch_rows(stream: str, first: int, count: int) -> Iterator[dict[str, object]]:
    """Yield batch rows of the control store."""
    account = PartitionAccount("sensors", 0, 0, 10, 10, 10, 0, 0, 0)
    sample = BatchRecord(stream, 0, 1, "data", 0, 0, (account,), {"early": 1}, 1, 0, {"process": 1.0})
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
    reported = sum(isinstance(event, AssetMaterialization) for event in events)
    return reported, getattr(result, "cursor", cursor)


def report_running_streams(store: ControlStore, streams: list[str]) -> None:
    """Report all streams as running, as a host does."""
    now = now_ms()
    for stream in streams:
        store.set_desired_state(stream, DesiredRunState.RUNNING, now)
        store.acquire_lease(stream, "host", now, DAY_MS)
        store.report_health(StreamHealth(stream, StreamState.RUNNING, "", now))


def measure_sensor(folder: Path, store: ControlStore, names: list[str], count: int) -> tuple[float, float]:
    """Return the seconds of the longest tick over all history, and of a tick with one new batch per stream."""
    plan: Plan = catalog.load_plan(catalog.pipeline_names()[0])
    plans = [
        replace(plan, name=name, stages=rename_stage_tables(plan, number))
        for number, name in enumerate(names)
    ]
    reported_streams = [ReportedStream(each.name, stream_asset_keys(each)) for each in plans]
    sensor = build_batch_sensor(BatchReporter(reported_streams, lambda: store, now_ms, 0))
    with DagsterInstance.local_temp(str(folder)) as instance:
        longest_s, cursor = 0.0, None
        while True:
            started = time.perf_counter()
            reported, cursor = run_sensor_tick(sensor, instance, cursor)
            longest_s = max(longest_s, time.perf_counter() - started)
            if not reported:
                break
        for each in plans:
            store.record_batch(make_batch_record(each.name, count))
        started = time.perf_counter()
        with build_sensor_context(instance=instance) as context:
            sensor(context)
        last_tick_s = time.perf_counter() - started
    return longest_s, last_tick_s


def rename_stage_tables(plan: Plan, number: int) -> tuple[object, ...]:
    """Return the stages of a plan with numbered table names."""
    return tuple(
        replace(stage, sinks=tuple(replace(sink, table=f"{sink.table}_{number}") for sink in stage.sinks))
        for stage in plan.stages
    )


def make_batch_record(stream: str, number: int) -> BatchRecord:
    """Return a batch record."""
    account = PartitionAccount("sensors", 0, 0, 10, 10, 10, 0, 0, 0)
    return BatchRecord(stream, number, 1, "data", number, 0, (account,), {"early": 1}, 1, 0, {"process": 1.0})


def main(streams: int, count: int) -> None:
    """Run every measurement, and print a row for each."""
    table = Table("measurement", "seconds", "required")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        store = open_control_store(f"sqlite:///{home}/control.db")
        run_status = make_command(PENSTOCK_COMMAND, "status", home=home)
        table.add_row("penstock status, no streams", f"{median_seconds(run_status, 7):.2f}", "0.5")
        # Streams of the catalog have files, and `status` compares their times with the start of the stream.
        names = [*catalog.pipeline_names(), *(f"stream_{number}" for number in range(streams))][:streams]
        write_batches(store, names, count)
        report_running_streams(store, names)
        name = f"penstock status: {streams} running streams, {streams * count} batches"
        table.add_row(name, f"{median_seconds(run_status, 7):.2f}", "0.5")
        table.add_row(
            "penstock --help",
            f"{median_seconds(make_command(PENSTOCK_COMMAND, '--help', home=home), 5):.2f}",
            "",
        )
        loading = make_command(sys.executable, "-c", LOAD_DEFINITIONS, home=home)
        table.add_row("load of the code location", f"{median_seconds(loading, 5):.2f}", "5")
        longest_s, last_tick_s = measure_sensor(Path(scratch), store, names, count)
        store.close()
        table.add_row(
            f"sensor: {streams} streams, {streams * count} unreported batches, longest tick",
            f"{longest_s:.2f}",
            "60",
        )
        table.add_row(f"sensor: {streams} streams, one new batch each", f"{last_tick_s:.2f}", "2")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "streams", nargs="?", type=int, default=100, help="number of streams (default: %(default)s)"
    )
    parser.add_argument(
        "batches", nargs="?", type=int, default=10_000, help="batches per stream (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.streams, arguments.batches)
