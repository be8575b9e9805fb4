"""The replays that were measured, and the batches from which the first one is estimated."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import insert, select

from penstock.platform.control.batch_rates import DATA_KIND
from penstock.platform.control.store import ControlStore
from penstock.platform.control.tables import batches, replays

MAX_SAMPLES = 20_000
"""How many of a stream's last batches are read: a few hours of a busy stream, in some 50 ms."""


@dataclass(frozen=True)
class MeasuredReplay:
    """A finished replay: how long it took, how much of that was the start of Spark, and what was estimated."""

    stream: str
    finished_at_ms: int
    records: int
    seconds: float
    start_seconds: float
    estimated_seconds: float


@dataclass(frozen=True)
class BatchSample:
    """The size and the duration of a batch; the first one of a stream on a host is cold."""

    records: int
    seconds: float
    is_cold: bool


def record_replay(store: ControlStore, replay: MeasuredReplay) -> None:
    """Store how long a replay took."""
    with store.engine.begin() as connection:
        connection.execute(insert(replays).values(**asdict(replay)))


def read_last_replay(store: ControlStore, stream: str) -> MeasuredReplay | None:
    """Return the last measured replay of a stream; None if there is none."""
    query = select(replays).where(replays.c.stream == stream).order_by(replays.c.finished_at_ms.desc())
    with store.engine.connect() as connection:
        row = connection.execute(query.limit(1)).mappings().first()
    return None if row is None else MeasuredReplay(**row)


def read_batch_samples(store: ControlStore, stream: str) -> Sequence[BatchSample]:
    """Return the last batches of a stream that read records, newest first."""
    columns = batches.c.batch_id, batches.c.epoch, batches.c.read, batches.c.duration_ms
    query = select(*columns).where(
        batches.c.stream == stream, batches.c.kind == DATA_KIND, batches.c.read > 0, batches.c.duration_ms > 0
    )
    with store.engine.connect() as connection:
        rows = connection.execute(query.order_by(batches.c.batch_id.desc()).limit(MAX_SAMPLES)).all()
    first_batch_of_epoch = {row.epoch: row.batch_id for row in rows}  # rows are newest first
    return [
        BatchSample(row.read, row.duration_ms / 1000, row.batch_id == first_batch_of_epoch[row.epoch])
        for row in rows
    ]
