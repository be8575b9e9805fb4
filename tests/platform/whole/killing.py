"""All processes of a stack, and what must be so when any of them were killed or stopped for a while."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from dagster import DagsterInstance
from tests.platform.whole.expected import settled
from tests.platform.whole.stack import ScratchStack, until

from penstock.ingestion.ledger import read_addresses
from penstock.platform.definitions.asset_keys import stream_key

BACK_SECONDS = 180.0
STREAM = "sensor_minute"


@dataclass(frozen=True)
class Exact:
    """What was compared, and agreed."""

    windows: int
    records: int
    told: int
    """Materializations of the stream in Dagster, which tell of every batch once and in order."""


def processes(stack: ScratchStack) -> dict[str, list[psutil.Process]]:
    """Every process of the stack but the keeper around all of them, by what it is.

    A program is its name; what it has started is `NAME: COMMAND`, and what keeps it `tether of NAME`.
    """
    spec = str(stack.home / "run" / "manager.json")
    found: dict[str, list[psutil.Process]] = {}
    for keeper in psutil.process_iter(["cmdline"]):
        if spec in (keeper.info["cmdline"] or []):
            for process, what in _below(keeper, "manager"):
                found.setdefault(what, []).append(process)
    return found


def _below(parent: psutil.Process, what: str) -> Iterator[tuple[psutil.Process, str]]:
    """Every descendant, with what it is by what its parent is."""
    try:
        children = parent.children()
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            label = _label(child, what)
        except psutil.NoSuchProcess:
            continue
        yield child, label
        yield from _below(child, label)


def _label(child: psutil.Process, parent: str) -> str:
    specs = [Path(word) for word in child.cmdline() if Path(word).parent.name == "programs"]
    if specs:
        return f"tether of {specs[0].stem.rpartition('-')[0]}"
    if parent == "manager":
        return "manager"
    program = parent.removeprefix("tether of ")
    return program if program != parent else f"{parent.partition(':')[0]}: {child.name()}"


def exact(stack: ScratchStack) -> Exact:
    """Compare the table with the topic, the topic with what was acknowledged, and Dagster with the batches."""
    until(stack.ready, BACK_SECONDS, "everything to be back")
    with stack.without_feed():
        windows, records = counted_once(stack)
        return Exact(windows, records, told_once(stack))


def counted_once(stack: ScratchStack) -> tuple[int, int]:
    """Compare table, topic and acknowledgements while nothing is fed; returns how many windows and records."""
    windows, records = settled(stack), stack.records("sensors")
    addresses = read_addresses(stack.home / "producers" / "sensors-1")
    acknowledged = {(one.partition, one.offset) for one in addresses}
    missing = acknowledged - {(partition, offset) for partition, offset, _, _ in records}
    assert acknowledged
    assert not missing, f"{len(missing)} acknowledged records are not in the topic"
    values = [value for _, _, _, value in records]
    assert len(values) == len(set(values)), "a record is in the topic twice"
    return len(windows), len(records)


def told_once(stack: ScratchStack) -> int:
    """Wait until Dagster knows the newest batch; it must have been told of each one once, in order."""
    newest = stack.batch(STREAM)
    with DagsterInstance.from_config(str(stack.home / "dagster")) as instance:
        until(lambda: newest_told(instance) >= newest, 90, f"Dagster to know batch {newest}")
        found = told_of(instance)
    assert [first for first, _ in found] == [0, *(last + 1 for _, last in found[:-1])], found
    return len(found)


def newest_told(instance: DagsterInstance) -> int:
    """The newest batch of the stream that Dagster knows; -1 before the first."""
    told = told_of(instance)
    return told[-1][1] if told else -1


def told_of(instance: DagsterInstance) -> list[tuple[int, int]]:
    """The first and the last batch of each materialization of the stream, in the order in which they were told."""
    found, cursor = [], None
    while True:
        page = instance.fetch_materializations(stream_key(STREAM), limit=500, cursor=cursor, ascending=True)
        for record in page.records:
            told = record.asset_materialization
            assert told is not None
            found.append(tuple(int(str(told.metadata[name].value)) for name in ("first_batch", "batch")))
        if not page.has_more:
            return [(first, last) for first, last in found]
        cursor = page.cursor
