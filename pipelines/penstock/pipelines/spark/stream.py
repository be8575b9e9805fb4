"""One stream at work: Spark's query brings micro-batches, a ticker brings what the clock alone decides."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from penstock.pipelines.batch.engine import Engine
from penstock.pipelines.batch.inputs import rules_of, topic_of
from penstock.pipelines.batch.intent import Intent
from penstock.pipelines.batch.journal import Journal, kept_outcomes
from penstock.pipelines.batch.options import Options
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.placement import BUDGET_BYTES, Placement
from penstock.pipelines.batch.poison import SentAgain, nothing_sent_again
from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import StreamTables
from penstock.pipelines.errors import DefinitionError, DrainedError, StreamEndedError
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.host.folders import CHECKPOINT
from penstock.pipelines.host.lag import Lag
from penstock.pipelines.host.work import working_on
from penstock.pipelines.plan.check_when import check_live
from penstock.pipelines.plan.codec import fingerprint
from penstock.pipelines.plan.source import Topic
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.repeats.memory import memory_of
from penstock.pipelines.spark.analysed import Analysed
from penstock.pipelines.spark.asking import READING
from penstock.pipelines.spark.avro import Schemas, no_registry, writers_of
from penstock.pipelines.spark.checkpoints import own_checkpoint
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.offsets import ranges_of
from penstock.pipelines.spark.reading import SparkReading
from penstock.pipelines.spark.session import is_alive
from penstock.pipelines.spark.spreading import SparkSpreader
from penstock.pipelines.spark.starting import starting_offsets
from penstock.pipelines.store import Place
from penstock.pipelines.tables.lookup import LookedUp
from penstock.pipelines.upgrade.fitting import check_types
from penstock.pipelines.upgrade.stored import accept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""Milliseconds of UTC."""

LONGEST_WAIT_S = 1.0
"""How long the ticker sleeps at most, for a batch may have set a timer meanwhile."""


@dataclass(frozen=True)
class StreamConfig:
    """Where a stream reads and where it keeps and writes."""

    bootstrap: str
    directory: Path
    """Checkpoint, journal and state."""
    warehouse: Place
    records_per_batch: int = 500_000
    driver_budget: int = BUDGET_BYTES
    """Bytes of partials and of windows that the driver may fold; a batch above it is folded in the executors."""
    poison_limit: int = 0
    """How many records may be set aside because they break one's own code, among the batches that are kept."""
    sent_again: SentAgain = field(default=nothing_sent_again, repr=False)
    """Which records were sent again, and are left out where a stream comes to them only now."""
    schemas: Schemas = field(default=no_registry, repr=False)
    """Where the schemas of records in Avro are found."""
    interval_ms: int = 0
    """Least time from one batch's begin to the next; with 0 a batch begins whenever a record is there."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More options for Spark's Kafka source, such as those of a secured broker."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same for clients of librdkafka, which have names of their own for them."""

    @property
    def clients(self) -> Mapping[str, str]:
        """What a client that asks for the lag is made with."""
        return {"bootstrap.servers": self.bootstrap, "log_level": "2", **self.client}


class Stream:
    """A stream that runs until it is stopped, or fails. Start it once."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        config: StreamConfig,
        right: Right,
        told: Callable[[Outcome], None],
        clock: Clock,
    ) -> None:
        self.plan = plan
        self._session = session
        self._config = config
        self._clock = clock
        self._cut = threading.Event()
        check_live(plan)
        held = right.holds
        right = replace(right, holds=lambda: held() and not self._cut.is_set())
        self._right = right
        graph = ready_graph(plan, FieldTypes(session).of(plan))
        self._graph = graph
        self._lag = Lag(config.clients, clock)
        self._rules = rules_of(plan.sources)
        self._firsts = graph.firsts
        self._analysed = Analysed()
        tables = StreamTables(plan, graph, config.warehouse, config.clients)
        looked_up = LookedUp(plan.lookups, config.warehouse)
        self._engine = Engine(
            graph,
            self._rules,
            config.directory,
            tables,
            right,
            told,
            Options(
                self._lag.behind,
                fingerprint(plan),
                memory_of(plan, config.directory / "ids"),
                Placement(config.driver_budget, SparkSpreader(session)),
                config.poison_limit,
                looked_up.versions,
                config.sent_again,
            ),
        )
        self._looked_up = looked_up
        self._one_at_a_time = threading.Lock()
        self._paused = False
        self._reads_since = 0
        self._stopping = threading.Event()
        self._ticker = threading.Thread(
            target=self._tick_when_due, name=f"ticker of {plan.name}", daemon=True
        )
        self._query: StreamingQuery | None = None
        self._checkpoint = config.directory / CHECKPOINT  # until it is begun, and has one of its own
        self._failure: BaseException | None = None

    def decided(self, after: int) -> Iterator[Outcome]:
        """Every batch after one that is decided and kept."""
        return kept_outcomes(self._config.directory / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        """Finish what the last run began, and begin to read, or go only by the clock at first."""
        self._right.check()  # making ready may have taken long, and the next line says what the state goes by
        directory = self._config.directory
        last = Journal(directory / "journal").last_outcome()
        fits = partial(check_types, directory, self.plan.name, self._graph)
        upgrade = accept(directory, self.plan, last, fits)
        if upgrade.differences:
            with working_on(self.plan.name):
                log.info("goes on with a changed definition: %s", upgrade.in_words)
        self._checkpoint = own_checkpoint(directory, self._right)
        self._reads_since = self._clock()
        self._engine.resume()
        self._paused = not reading
        if reading:
            self._read()
        self._ticker.start()

    def _read(self) -> None:
        self._reads_since = self._clock()
        writer = self._raw().writeStream.queryName(self.plan.name).foreachBatch(self._data)
        if self._config.interval_ms:
            writer = writer.trigger(processingTime=f"{self._config.interval_ms} milliseconds")
        self._query = writer.option("checkpointLocation", str(self._checkpoint)).start()

    def failure(self) -> BaseException | None:
        """Why the stream no longer runs; None while it does."""
        if self._failure is None and self._query is not None:
            ended = _ended(self._query)
            # A batch that failed meanwhile said why in its own words before Spark ended the query.
            self._failure = self._failure or ended
        return self._failure

    @property
    def last(self) -> Outcome | None:
        """The newest batch that is decided."""
        return self._engine.last

    def at(self) -> str:
        """Which batch it is at, and of which records."""
        return self._engine.at

    def pause(self) -> None:
        """Finish the batch at work, and read no more; what the clock alone brings goes on."""
        with self._one_at_a_time:
            self._paused = True
        self._end_query()

    def resume(self) -> None:
        """Read again, from where it was."""
        if self._paused:
            self._paused = False
            self._read()

    def drain(self) -> None:
        """Finish the batch at work, and stop. Nothing is cut off."""
        self._stopping.set()
        with self._one_at_a_time:
            pass  # the batch that was at work is finished, and none begins any more
        self._end()

    def stop(self) -> None:
        """Cut off the batch at work, and stop. What was not decided of it is done again at the next start."""
        self._cut.set()
        self._stopping.set()
        self._end()

    def _end(self) -> None:
        self._end_query()
        with self._one_at_a_time:
            pass  # what was cut off may take a moment to see it
        if self._ticker.is_alive():
            self._ticker.join()

    def _end_query(self) -> None:
        query, self._query = self._query, None
        if query is not None and is_alive(self._session):
            query.stop()

    def _data(self, frame: "DataFrame", spark_batch: int) -> None:
        with self._one_at_a_time:
            if self._stopping.is_set() or self._paused:
                # Spark must not take a batch for done that nobody ran: it comes again at the next start.
                raise DrainedError(self.plan.name, spark_batch)
            try:
                self._batch(frame, spark_batch)
            except Exception as problem:
                # Spark would tell of it in Java's words.
                if not self._stopping.is_set():
                    self._failure = problem
                raise

    def _batch(self, frame: "DataFrame", spark_batch: int) -> None:
        self._right.check()  # a successor may have taken the checkpoint, which says what the batch is
        ranges = ranges_of(self._checkpoint, spark_batch)

        def read(intent: Intent) -> Reading:
            found = self._looked_up.at(intent.lookups)
            first, *others = self._firsts
            return SparkReading(
                frame,
                self.plan.sources,
                first,
                intent.clock,
                ranges,
                found=found,
                others=tuple(others),
                analysed=self._analysed,
                writers=writers_of(self.plan.sources, self._config.schemas),
            )

        self._engine.data(spark_batch, self._clock(), ranges, read, unread=self._while_nobody_read())

    def _tick_when_due(self) -> None:
        while not self._stopping.is_set():
            try:
                self._tick_if_due()
            except Exception as problem:  # noqa: BLE001  # whatever it is, it ends the stream; the host is told
                self._failure = problem
                self._stopping.set()
                return
            wait_ms = min(max(self._engine.next_due() - self._clock(), 0), LONGEST_WAIT_S * 1000)
            self._stopping.wait(max(wait_ms, 5) / 1000)

    def _tick_if_due(self) -> None:
        if self._engine.next_due() > self._clock():
            return
        with self._one_at_a_time:
            now = self._clock()
            if not self._stopping.is_set() and self._engine.next_due() <= now:
                self._engine.tick(now, unread=self._unread(now))

    def _while_nobody_read(self) -> list[str]:
        """All partitions, until a batch has begun since they are read: before that nobody could hear of them."""
        last = self.last
        return list(last.ends) if last is not None and last.clock < self._reads_since else []

    def _unread(self, now: int) -> list[str]:
        """The partitions that a tick must not take for silent; the broker is asked only where one would be."""
        if self.last is None or not self.last.reached.silent(self._rules, now):
            return []
        return self._while_nobody_read() or self._lag.unread(self.last.read_up_to)

    def _raw(self) -> "DataFrame":
        for source in self.plan.sources:
            if not isinstance(source.origin, Topic):
                raise DefinitionError(
                    "read",
                    f"{source.origin}",
                    "A live stream reads topics; `penstock run` reads stored files",
                )
        topics = [topic_of(source) for source in self.plan.sources]
        last = self._engine.last
        starts = (
            None if last is None else starting_offsets(self._checkpoint, last, topics, self._config.clients)
        )
        options = _kafka(self._config, topics) | ({} if starts is None else {"startingOffsets": starts})
        return self._session.readStream.format("kafka").options(**options).load()


def _ended(query: "StreamingQuery") -> BaseException | None:
    """Why a query has ended; None while it goes on."""
    try:
        return None if query.isActive else query.exception() or StreamEndedError(query.name)
    except (Py4JError, OSError) as problem:
        return problem


def _kafka(config: StreamConfig, topics: Sequence[str]) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": config.bootstrap,
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(config.records_per_batch),
        **READING,
        **config.kafka,
    }
