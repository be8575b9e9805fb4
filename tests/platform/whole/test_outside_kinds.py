"""A window, a trigger, an aggregate, two sinks and a source from outside of the tree, in a whole stack.

No file of the tree knows of them. The stack's commands and processes find them by installed entry points, through a
host that is killed, an audit and a replay.
"""

import json
import os
import signal
import sqlite3
import subprocess
from collections import Counter, defaultdict
from contextlib import closing
from functools import reduce
from operator import itemgetter, xor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.installed_kinds import install_entry_points
from tests.patience import PATIENCE_S
from tests.pipelines import outside_kinds
from tests.platform.whole.scratch_stack import PENSTOCK, ScratchStack, poll_until

pytestmark = pytest.mark.whole

STREAM = "plant_shifts"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SHIFT_STARTS_MS = (6 * HOUR_MS, 14 * HOUR_MS, 22 * HOUR_MS)
SHIFT_LENGTH_MS = 8 * HOUR_MS + 15 * 60_000
RECORDS, FIRST_PART = 6_000, 2_500
PIPELINE = f"""
read: {{topic: sensors, idle_after: 5 seconds}}
steps:
  - sql: SELECT *, CAST(substr(id, 2) AS BIGINT) AS number FROM input
key: device
aggregate:
  readings: count()
  temperature: most_frequent(temperature)
  numbers: checksum(number)
window: {{shifts: {{starts: [6 hours, 14 hours, 22 hours], length: 8h15m}}}}
trigger: {{after_watermark: {{early: {{repeatedly: {{after_inactivity: 500 ms}}}}}}, lateness: 2 days}}
accumulation: retracting
write:
  - {{table: {STREAM}, mode: latest}}
  - {{table: {STREAM}, mode: log}}
  - {{table: {STREAM}_file, mode: sqlite}}
"""
SOURCE = '''
"""A source of readings over some weeks, each thirteenth of them hours late."""

import json

from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources import ReplayableSource, SourceKind, SourceOption

FIRST_MS, STEP_MS, LATE_MS = 1_767_225_600_000, 600_000, 7_200_000


class PlantSource(ReplayableSource, SourceKind):
    """Readings of the machines of a plant."""

    kind = "plant"
    options = (SourceOption("machines", "The number of machines.", int, is_required=True),)

    def __init__(self, machines):
        self.description = f"plant of {machines} machines"
        self._machines = machines

    @classmethod
    def open(cls, context):
        return cls(context.options["machines"])

    def read(self, position):
        for first in range(position or 0, 1_000_000, 100):
            yield SourceBatch([self.read_machine(number) for number in range(first, first + 100)], first)

    def read_machine(self, number):
        late_ms = LATE_MS if number % 13 == 0 else 0
        reading = {
            "id": f"r{number}", "device": f"machine-{number % self._machines}", "site": "plant",
            "at": max(FIRST_MS, FIRST_MS + number * STEP_MS - late_ms), "temperature": number % 5 / 2,
        }
        return json.dumps(reading).encode()
'''
ENTRY_POINTS = {
    "penstock.windows": {"shifts": "outside_window:shifts"},
    "penstock.triggers": {"after_inactivity": "outside_trigger:after_inactivity"},
    "penstock.aggregates": {
        "most_frequent": "outside_aggregates:most_frequent",
        "checksum": "outside_aggregates:checksum",
    },
    "penstock.sinks": {"sqlite": "outside_sinks:sqlite"},
    "penstock.sources": {"plant": "outside_source:PlantSource"},
}


class Shift(NamedTuple):
    """What a shift of a machine should hold."""

    readings: int
    temperature: float
    numbers: int


Shifts = dict[tuple[str, int], Shift]
"""By machine and start of the shift (ms)."""


def test_kinds_from_outside_survive_a_kill_an_audit_and_a_replay(own_stack: ScratchStack) -> None:
    install_kinds(own_stack)
    own_stack.environment |= {"PENSTOCK_FEED__ENABLED": "false", "PENSTOCK_STREAMS": STREAM}
    own_stack.up()
    assert "Shifts of 8 hours 15 minutes that start 6 hours" in own_stack.run_checked("explain", STREAM)

    own_stack.run_checked(*ingestion(FIRST_PART))
    poll_until(lambda: own_stack.batch(STREAM) >= 0, PATIENCE_S, "the first batch")
    with subprocess.Popen([PENSTOCK, *ingestion(RECORDS - FIRST_PART)], env=own_stack.environment) as ingest:
        killed_host, batch = own_stack.pids()["host"], own_stack.batch(STREAM)
        poll_until(lambda: own_stack.batch(STREAM) > batch, PATIENCE_S, "a batch of the second part")
        os.kill(killed_host, signal.SIGKILL)
        assert ingest.wait(PATIENCE_S) == 0
    poll_until(lambda: own_stack.pids().get("host", killed_host) != killed_host, PATIENCE_S, "another host")

    expected = compute_shifts(own_stack.values())
    assert sum(shift.readings for shift in expected.values()) > RECORDS  # a handover is in both shifts
    assert_results(own_stack, expected)
    assert_audited(own_stack)

    answer = json.loads(own_stack.run_checked("stream", "replay", STREAM, "--json", seconds=240))
    assert answer["accounts"]["read"] == RECORDS
    assert_results(own_stack, expected)
    assert_audited(own_stack)


def install_kinds(stack: ScratchStack) -> None:
    """Write the modules and their entry points to a folder, and put it on the import path of the stack."""
    stack.copy_pipelines()
    (stack.catalog / f"{STREAM}.yaml").write_text(PIPELINE, "utf-8")
    folder = stack.home.parent / "outside"
    folder.mkdir()
    modules = {
        "outside_window": outside_kinds.WINDOW,
        "outside_trigger": outside_kinds.TRIGGER,
        "outside_aggregates": outside_kinds.AGGREGATES,
        "outside_sinks": outside_kinds.SINKS,
        "outside_source": SOURCE,
    }
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, "utf-8")
    for group, references in ENTRY_POINTS.items():
        install_entry_points(folder, group, **references)
    stack.add_import_folder(folder)


def ingestion(count: int) -> list[str]:
    return ["ingest", "plant", "--topic", "sensors", "--option", "machines=7", "--count", str(count)]


def compute_shifts(values: list[bytes]) -> Shifts:
    """Compute every shift from the bytes of the topic, one record and one day at a time."""
    records_by_shift: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for record in sorted(map(json.loads, values), key=itemgetter("at")):
        for day in (record["at"] // DAY_MS - 1, record["at"] // DAY_MS):
            for start in (day * DAY_MS + start_of_day for start_of_day in SHIFT_STARTS_MS):
                if start <= record["at"] < start + SHIFT_LENGTH_MS:
                    records_by_shift[record["device"], start].append(record)
    return {
        shift: Shift(
            len(records),
            Counter(record["temperature"] for record in records).most_common(1)[0][0],
            reduce(xor, (int(record["id"][1:]) for record in records)),
        )
        for shift, records in records_by_shift.items()
    }


def assert_results(stack: ScratchStack, expected: Shifts) -> None:
    """Wait until both sinks hold exactly these shifts."""
    poll_until(lambda: read_table(stack) == expected, PATIENCE_S, "the latest values")
    assert read_sqlite(stack) == expected


def read_table(stack: ScratchStack) -> Shifts:
    rows = stack.table("latest", STREAM).to_pylist()
    shifts = {
        (row["device"], int(row["window_start"].timestamp() * 1000)): Shift(
            row["readings"], row["temperature"], row["numbers"]
        )
        for row in rows
    }
    assert len(shifts) == len(rows), "a shift has two rows"
    return shifts


def read_sqlite(stack: ScratchStack) -> Shifts:
    file: Path = stack.warehouse / "external" / f"{STREAM}_file" / "result.sqlite"
    query = f'SELECT device, window_start / 1000, readings, temperature, numbers FROM "{STREAM}_file"'
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        rows = connection.execute(query).fetchall()
    shifts = {(device, start): Shift(*values) for device, start, *values in rows}
    assert len(shifts) == len(rows), "a shift has two rows"
    return shifts


def assert_audited(stack: ScratchStack) -> None:
    answer = stack.run("audit", STREAM, "--json", seconds=300)
    report = json.loads(answer.stdout)
    states = {verdict["check"]: verdict["state"] for verdict in report["verdicts"]}
    assert answer.returncode == 0, report["verdicts"]
    assert states.pop("results") == "passed", report["verdicts"]
    assert "failed" not in states.values(), report["verdicts"]
