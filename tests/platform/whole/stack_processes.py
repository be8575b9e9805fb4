"""The processes of a stack, and what must hold after any of them were killed or paused."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from dagster import DagsterInstance
from tests.patience import PATIENCE_S
from tests.platform.whole.expected_windows import wait_for_windows
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

from penstock.ingestion.ledger import read_addresses
from penstock.platform.definitions.asset_keys import stream_key

STREAM = "sensor_minute"


@dataclass(frozen=True)
class ComparedCounts:
    """The numbers of what was compared and agreed."""

    windows: int
    records: int
    materializations: int
    """Materializations of the stream in Dagster, which cover every batch once and in order."""


def find_processes(stack: ScratchStack) -> dict[str, list[psutil.Process]]:
    """Return every process of the stack except the keeper, by its kind.

    A program has its name, its child is `NAME: COMMAND`, and its tether is `tether of NAME`.
    """
    spec = str(stack.home / "run" / "manager.json")
    processes_by_kind: dict[str, list[psutil.Process]] = {}
    for keeper in psutil.process_iter(["cmdline"]):
        if spec in (keeper.info["cmdline"] or []):
            for process, kind in _walk_descendants(keeper, "manager"):
                processes_by_kind.setdefault(kind, []).append(process)
    return processes_by_kind


def _walk_descendants(parent: psutil.Process, kind: str) -> Iterator[tuple[psutil.Process, str]]:
    """Yield every descendant with its kind."""
    try:
        children = parent.children()
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            label = _label(child, kind)
        except psutil.NoSuchProcess:
            continue
        yield child, label
        yield from _walk_descendants(child, label)


def _label(child: psutil.Process, parent: str) -> str:
    specs = [Path(word) for word in child.cmdline() if Path(word).parent.name == "programs"]
    if specs:
        return f"tether of {specs[0].stem.rpartition('-')[0]}"
    if parent == "manager":
        return "manager"
    program = parent.removeprefix("tether of ")
    return program if program != parent else f"{parent.partition(':')[0]}: {child.name()}"


def check_exactness(stack: ScratchStack) -> ComparedCounts:
    """Compare the table with the topic, the topic with acknowledgements, and Dagster with the batches."""
    poll_until(stack.ready, PATIENCE_S, "everything to be back")
    with stack.without_feed():
        windows, records = check_counted_once(stack)
        return ComparedCounts(windows, records, check_reported_once(stack))


def check_counted_once(stack: ScratchStack) -> tuple[int, int]:
    """Compare table, topic and acknowledgements without a feed; return the numbers of windows and records."""
    windows, records = wait_for_windows(stack), stack.records("sensors")
    addresses = read_addresses(stack.home / "producers" / "sensors-1")
    acknowledged = {(address.partition, address.offset) for address in addresses}
    missing = acknowledged - {(partition, offset) for partition, offset, _, _ in records}
    assert acknowledged
    assert not missing, f"{len(missing)} acknowledged records are not in the topic"
    values = [value for _, _, _, value in records]
    assert len(values) == len(set(values)), "a record is in the topic twice"
    return len(windows), len(records)


def check_reported_once(stack: ScratchStack) -> int:
    """Wait until Dagster has the newest batch; each batch must be reported once, in order."""
    newest = stack.batch(STREAM)
    with DagsterInstance.from_config(str(stack.home / "dagster")) as instance:
        poll_until(
            lambda: newest_reported_batch(instance) >= newest, PATIENCE_S, f"Dagster to know batch {newest}"
        )
        reported = list_reported_batches(instance)
    assert [first for first, _ in reported] == [0, *(last + 1 for _, last in reported[:-1])], reported
    return len(reported)


def newest_reported_batch(instance: DagsterInstance) -> int:
    """Return the newest batch of the stream in Dagster; -1 before the first."""
    reported = list_reported_batches(instance)
    return reported[-1][1] if reported else -1


def list_reported_batches(instance: DagsterInstance) -> list[tuple[int, int]]:
    """Return the first and last batch of each materialization of the stream, in their order."""
    batches, cursor = [], None
    while True:
        page = instance.fetch_materializations(stream_key(STREAM), limit=500, cursor=cursor, ascending=True)
        for record in page.records:
            materialization = record.asset_materialization
            assert materialization is not None
            batches.append(
                tuple(int(str(materialization.metadata[name].value)) for name in ("first_batch", "batch"))
            )
        if not page.has_more:
            return [(first, last) for first, last in batches]
        cursor = page.cursor
