"""A whole stream to audit: a feed with its ledger, a topic, its archive, and all tables."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tests.pipelines.engine.archive.test_archive import ArchivedTopic
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.archive.archive_names import archive_name
from penstock.engine.archive.topic_archive import TopicArchive
from penstock.engine.archive.topic_reader import fetch_topic_id
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.storage import StoragePath
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.registry import FileRegistry, WriterSchemaCache
from penstock.ingestion.sources import GeneratorSource
from penstock.quality.audit.audit_check import StreamCheck, list_checks
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditReport
from penstock.quality.expectations.stream_checks import add_topic_checks
from penstock.stream import after_watermark, count, every, fixed, mean, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = 1_800_000_000_000
MINUTE = 60_000
PART_COUNT = 6
FULL_SAMPLE = Sample()


def build_plan(contract: Contract) -> Plan:
    """Mean temperatures per minute, with one minute of allowed lateness."""
    pipeline = (
        read(contract, max_future_skew="1 hour")
        .key("device")
        .aggregate(temperature=mean("temperature"), readings=count())
        .window(fixed("1 minute"))
        .trigger(after_watermark(early=every("10 seconds")), lateness="1 minute")
        .accumulation("retracting")
        .write("minutes", mode="latest")
        .write("minutes", mode="log")
    )
    return pipeline.to_plan("minutes")


class StreamArchive(ArchivedTopic):
    """An archive whose journal is in the folder of the stream."""

    def open_archive(self, epoch: int = 1) -> TopicArchive:
        fence, topic_id = (
            WriteFence(archive_name(self.topic), epoch, lambda: True),
            fetch_topic_id(self.client, self.topic),
        )
        archive = TopicArchive(
            self.topic, topic_id, self.folder / "archive", self.warehouse, fence, self.outcomes.append
        )
        archive.resume()
        return archive


@dataclasses.dataclass
class AuditedStream:
    """A stream that has read the records of a feed, with late and invalid records between them."""

    session: "SparkSession"
    broker: LocalBroker
    topic: str
    folder: Path
    clock: int = NOON
    suites: Path | None = None
    """The folder of suites with checks of the stream's records."""
    elsewhere: StoragePath | None = None
    """The path of the tables, if not below the folder."""
    registry: FileRegistry | None = None
    """The registry of schemas, if the records are in Avro."""

    @property
    def contract(self) -> Contract:
        encoding = "json" if self.registry is None else "avro"
        return dataclasses.replace(load_contract("sensors"), topic=self.topic, encoding=encoding)

    @property
    def schemas(self) -> SchemaLookup:
        """The lookup of writer schemas."""
        registry = self.registry
        return (
            refuse_without_registry if registry is None else WriterSchemaCache(lambda: registry).find_readable
        )

    def run(self, records: int) -> None:
        """Feed and read records in parts, with late and invalid ones between; then archive them."""
        self.broker.create_topic(self.topic, 3)
        self.broker.create_topic(self.contract.dead_letter_topic, 1)
        self.open()
        for part in range(1, PART_COUNT):
            self.feed(part * records // PART_COUNT)
            self.clock += MINUTE
        self._running.run_until_read((PART_COUNT - 1) * records // PART_COUNT)
        self.feed(records)
        sent = {"id": "old", "device": "a", "site": "s", "at": NOON - 900 * MINUTE, "temperature": 1.0}
        encode = create_record_format(self.contract, self.registry).encode
        late_record, future_record = encode(sent), encode({**sent, "id": "new", "at": NOON + 900 * MINUTE})
        headers: list[tuple[str, bytes | None]] = [("trace", b"1"), ("trace", None), ("\u00e9", b"")]
        send(
            self.broker,
            self.topic,
            [late_record, b"broken", None, future_record],
            partition=1,
            headers=headers,
        )
        self._running.clock = self.clock
        self._running.run_until_read(records + 4)
        self.archive()

    def resume(self, records: int) -> None:
        """Read until the given number of records in all, and archive them."""
        self._running.clock = self.clock
        self._running.run_until_read(records)
        self.archive()

    def open(self) -> StreamRunner:
        """Create the stream without starting it."""
        plan = build_plan(self.contract)
        plan = plan if self.suites is None else add_topic_checks(plan, self.suites)
        self._running = StreamRunner(
            plan,
            self.session,
            self.broker,
            self.folder,
            clock=self.clock,
            warehouse_override=self.elsewhere,
            schemas=self.schemas,
        )
        return self._running

    @property
    def warehouse(self) -> StoragePath:
        return self.elsewhere or self.folder / "warehouse"

    def archive(self) -> None:
        """Archive all records of the topic."""
        archived = StreamArchive(self.broker, self.topic, self.folder, warehouse_override=self.elsewhere)
        archived.archive_all(archived.open_archive(), batch_size=2_000)

    def feed(self, until: int) -> None:
        """Send generated records up to a sequence."""
        encode = None if self.registry is None else create_record_format(self.contract, self.registry).encode
        source = GeneratorSource(
            SensorGenerator(7), self.contract, lambda: self.clock, rate=None, encode=encode
        )
        feed = Feed(
            source,
            self.contract,
            self.broker.bootstrap,
            self.folder / "producer",
            lambda: self.clock,
            registry=self.registry,
        )
        summary = feed.run(Event(), limits=FeedLimits(until=until))
        assert summary.complete

    def copy(self, name: str) -> Path:
        """Copy the files of the stream, so that a test can damage the copy."""
        folder = self.folder.with_name(f"{self.folder.name}-{name}")
        for part in ("warehouse", "stream", "producer"):
            shutil.copytree(self.folder / part, folder / part)
        return folder

    def scope(self, folder: Path) -> AuditScope:
        return AuditScope(
            plan=self._running.plan,
            batches=[to_batch_record("minutes", outcome) for outcome in self._running.progress.outcomes],
            warehouse=self.elsewhere or folder / "warehouse",
            journal=folder / "stream" / "journal",
            producer_ledgers={"feed": folder / "producer"},
            broker=BrokerAccess(self.broker.bootstrap),
            decisions_folder=folder / "quarantine",
            scratch_folder=folder / "scratch",
            clock=lambda: NOON,
            open_session=lambda: self.session,
            schemas=self.schemas,
        )

    def audit(self, folder: Path | None = None, sample: Sample = FULL_SAMPLE) -> AuditReport:
        return run_audit(self.scope(folder or self.folder), sample)


def find_states(report: AuditReport) -> Mapping[str, str]:
    """Return the state of each check, by its name without the topic."""
    return {
        verdict.check if verdict.check in STREAM_CHECK_NAMES else verdict.check.split()[0]: verdict.state
        for verdict in report.verdicts
    }


STREAM_CHECK_NAMES = {check.name for check in list_checks(StreamCheck)}
