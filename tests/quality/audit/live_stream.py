"""A stream that commits and prunes batches in a thread, and whose host is killed again and again."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, KillSchedule, SimulatedKill, make_killable_tables
from tests.quality.audit.recorded_stream import create_scope

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.batch import history_pruning
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.host.control import BatchRecord
from penstock.engine.host.control_reporter import to_batch_record
from penstock.quality.audit.scope import AuditScope

RETAINED_BATCHES = 2
MAX_STEPS_TO_KILL = 25


@dataclass
class LiveStream:
    """The stream, and what its hosts reported to the control store."""

    bench: Bench
    reports: list[BatchRecord]
    kills: int = 0
    failures: list[Exception] = field(default_factory=list)
    """Why no host runs any more; raised when the block ends."""

    def create_scope(self) -> AuditScope:
        """Return the scope of an audit up to the newest reported batch."""
        self.bench.outcomes[:] = read_retained_outcomes(self.bench.folder / "stream" / "journal")[:1]
        return replace(create_scope(self.bench), batches=list(self.reports))

    def report(self, outcome: BatchOutcome) -> None:
        """Report a batch once, as the host does."""
        if not self.reports or outcome.batch_id > self.reports[-1].batch_id:
            self.reports.append(to_batch_record(PLAN.name, outcome))


@contextmanager
def run_live_stream(folder: Path, seed: int) -> Iterator[LiveStream]:
    """Run the stream while the block runs. Its journal is pruned with every second batch."""
    stream, stopping = LiveStream(Bench(PLAN, folder), []), threading.Event()

    def run_hosts() -> None:
        try:
            _run_hosts(stream, random.Random(seed), stopping)
        except Exception as error:  # noqa: BLE001  # raised again by the test
            stream.failures.append(error)

    with mock.patch.object(history_pruning, "RETAINED_BATCHES", RETAINED_BATCHES):
        thread = threading.Thread(target=run_hosts)
        thread.start()
        try:
            yield stream
        finally:
            stopping.set()
            thread.join()
    if stream.failures:
        raise stream.failures[0]


def _run_hosts(stream: LiveStream, random_source: random.Random, stopping: threading.Event) -> None:
    epoch = 0
    while not stopping.is_set():
        epoch += 1
        kills = KillSchedule(random_source.randint(1, MAX_STEPS_TO_KILL))

        def report(outcome: BatchOutcome, kills: KillSchedule = kills) -> None:
            kills.count_step()
            stream.report(outcome)

        try:
            engine = stream.bench.open(epoch, make_tables=make_killable_tables(kills), report_outcome=report)
            while not stopping.is_set():
                last_id = -1 if engine.last_outcome is None else engine.last_outcome.batch_id
                stream.bench.feed(engine, make_batch(last_id + 1))
        except SimulatedKill:
            stream.kills += 1


def make_batch(number: int) -> InputBatch:
    """Return a batch with a record in each of two partitions, one of them late now and then."""
    time = 4 * number
    late_time = time - 40 if number % 5 == 4 else time
    return InputBatch(
        number,
        100 + time,
        tuple(
            InputRecord("records", partition, number, {"key": key, "at": at, "value": number, "word": None})
            for partition, key, at in ((0, "a", time), (1, "b", late_time))
        ),
    )
