"""Erasing a key: the state without it is written, decided like a batch, and what held it is removed.

Nobody else may write the stream meanwhile. Whoever is killed before the decision leaves the state as it was; after
it, the same request done again finishes what is left and counts nothing twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from penstock.pipelines import store
from penstock.pipelines.batch.inspecting import is_key
from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.settling import settle
from penstock.pipelines.erasure.account import ERASURES, FOLDER, Erased, account, digest
from penstock.pipelines.errors import ErasureError
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state.names import run_name
from penstock.pipelines.tables.log import LogTable

KIND = "erase"


@dataclass(frozen=True)
class Request:
    """Whose state is to go, by fields of keys given as text, who asked, and when (milliseconds)."""

    key: Mapping[str, str]
    asked_by: str
    at: int


@dataclass(frozen=True)
class Place:
    """Where a stream keeps its state, and its tables."""

    stream: str
    directory: Path
    warehouse: store.Place
    clients: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What clients of Kafka are made with, for what was decided and not published yet."""

    @property
    def journal(self) -> Journal:
        """Its journal."""
        return Journal(self.directory / "journal")

    @property
    def erasures(self) -> LogTable:
        """The table of accounts."""
        return LogTable(self.warehouse / FOLDER / self.stream, ERASURES, self.stream)


def stages_of_key(plan: Plan, key: Mapping[str, str]) -> dict[str, bool]:
    """Which stages know all fields of the key. ErasureError where none does."""
    knows = {stage.name: {*key} <= {*stage.key} for stage in plan.stages}
    if not key or not any(knows.values()):
        there = sorted({name for stage in plan.stages for name in stage.key})
        fields = ", ".join(key) or "nothing"
        raise ErasureError(
            plan.name,
            f"no stage has {fields} in its key",
            f"Name one or more of: {', '.join(there) or 'no fields'}",
        )
    return knows


def erase(place: Place, plan: Plan, request: Request, epoch: int) -> tuple[Outcome, Erased]:
    """Take a key out of the state. Returns the batch, and what it erased; asked again at once, the same."""
    knows = stages_of_key(plan, request.key)
    journal = place.journal
    last = journal.last_outcome()
    if last is None:
        raise ErasureError(plan.name, "it keeps nothing yet", "Start it first, or look again in a moment")
    asked = digest(plan.name, request.key)
    if last.kind != KIND or last.erased is None or last.erased.key_digest != asked:
        settle(last, plan, place.warehouse, place.clients)
        last = journal.decide(_without(place, last, knows, request, epoch))
    assert last.erased is not None, "two erased one stream at once, or an erasure and a batch"
    settle(last, plan, place.warehouse, place.clients)
    _forget(place, last)
    return last, last.erased


def _without(place: Place, last: Outcome, knows: Mapping[str, bool], request: Request, epoch: int) -> Outcome:
    number, clock = last.batch_id + 1, max(last.clock, request.at)
    files, windows = dict(last.state_files), dict[str, int | None]()
    for stage, known in knows.items():
        windows[stage] = None
        if known:
            folder = place.directory / "state" / stage
            files[stage], windows[stage] = _rewritten(
                folder, last.state_files.get(stage, ()), request.key, number
            )
    erased = Erased(tuple(sorted(request.key)), digest(place.stream, request.key), request.asked_by, windows)
    change = place.erasures.write(account(erased, number, clock), number, clock)
    return replace(
        last,
        batch_id=number,
        kind=KIND,
        clock=clock,
        epoch=epoch,
        state_files=files,
        changes={f"{FOLDER}/{place.stream}": change},
        accounts=(),
        panes={},
        durations_ms={},
        lag_records=0,
        archived=0,
        state_rows=_rows(place.directory, files),
        state_sizes={
            stage: _size(place.directory / "state" / stage, files.get(stage, ())) for stage in knows
        },
        erased=erased,
    )


def _rewritten(
    folder: Path, names: Sequence[str], key: Mapping[str, str], number: int
) -> tuple[list[str], int]:
    """One file with all that counts of some, without a key; and how many rows the key had.

    It is written also where the key has no row that counts: older files may hold rows of it that are over.
    """
    if not names:
        return [], 0
    rows = runs_of.Run(runs_of.merge([runs_of.read(folder / name) for name in names], oldest=True)).table
    gone = is_key(rows, key)
    path = folder / run_name(number)
    runs_of.write(runs_of.build(rows.filter(pc.invert(gone))), path)
    return [path.name], int(pc.sum(gone).as_py() or 0)


def _forget(place: Place, last: Outcome) -> None:
    """Remove the batches before, and the files that only they name: these hold the key."""
    place.journal.forget_before(last.batch_id)
    for stage, names in last.state_files.items():
        if stage.startswith("/"):  # ids of records are hashes, and say nothing of keys
            continue
        folder = place.directory / "state" / stage
        for path in [*folder.glob("run-*"), *folder.glob("*.partial")]:
            if path.name not in names:
                path.unlink()


def _size(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """How much a stage keeps; see `Outcome.state_sizes`."""
    rows = sum(len(runs_of.read(folder / name)) for name in names)
    return {"rows": rows, "bytes": sum((folder / name).stat().st_size for name in names)}


def _rows(directory: Path, files: Mapping[str, Sequence[str]]) -> int:
    """How many rows the state has, superseded ones included; see `Outcome.state_rows`."""
    folders = {name: directory / ("ids" if name.startswith("/") else f"state/{name}") for name in files}
    return sum(len(runs_of.read(folders[name] / file)) for name, names in files.items() for file in names)
