"""Trials of a pipeline in this process: records of files or samples in, result rows out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.core.clock import now_ms
from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.input_watermarks import topic_of
from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.source_discovery import open_source
from penstock.pipelines.catalog import load_demo
from penstock.platform.demo.timed_records import build_timed_records
from penstock.platform.errors import TrialInputError
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.services.stream_catalog import check_pipeline_exists, load_plan
from penstock.platform.settings import Settings
from penstock.testing import PipelineDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

InputFiles: TypeAlias = Mapping[str | None, Path]
"""A file for each topic; None stands for the only topic of the pipeline."""
SOURCE_KIND_BY_SUFFIX = {".csv": "csv", ".parquet": "parquet"}
DEFAULT_SOURCE_KIND = "json-lines"


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial: rows by the names of the columns of the tables."""

    pipeline: str
    input: str
    records: int
    latest: Sequence[Mapping[str, Any]]
    panes: Sequence[Mapping[str, Any]]
    late: Sequence[Mapping[str, Any]]
    quarantined: Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self)


def try_pipeline(
    settings: Settings, pipeline: str, files: InputFiles, limit: int, report_progress: ProgressReporter
) -> TrialResult:
    """Run a pipeline over at most `limit` records of each topic, in one batch that ends the input.

    Without files, the input is a sample of the topics' generators, which is the same each time. Raises
    TrialInputError if there is no input for a topic.
    """
    check_pipeline_exists(pipeline)
    topics = [topic_of(source) for source in load_plan(pipeline).sources]
    inputs = _read_files(topics, files, limit) if files else _make_samples(pipeline, topics, limit)
    with ExitStack() as stack:

        def open_spark() -> "SparkSession":
            session = stack.enter_context(open_command_spark(settings, f"try-{pipeline}", report_progress))
            report_progress("running SQL and DataFrame steps")
            return session

        driver = stack.enter_context(PipelineDriver(pipeline, clock=inputs.clock_ms, spark=open_spark))
        for topic, values in inputs.values.items():
            driver.send(*values, topic=topic)
        driver.end_input()
        return TrialResult(
            pipeline,
            inputs.description,
            sum(map(len, inputs.values.values())),
            driver.latest(),
            driver.panes(),
            driver.late(),
            driver.quarantined(),
        )


@dataclass(frozen=True)
class _TrialInput:
    values: Mapping[str, Sequence[bytes]]
    clock_ms: int
    description: str


def _read_files(topics: Sequence[str], files: InputFiles, limit: int) -> _TrialInput:
    paths = {_resolve_topic(topic, topics): path for topic, path in files.items()}
    missing = [topic for topic in topics if topic not in paths]
    if missing:
        raise TrialInputError(f"there is no input for {', '.join(missing)}. Add --from {missing[0]}=FILE")
    values = {topic: list(islice(_iter_values(topic, path), limit)) for topic, path in paths.items()}
    return _TrialInput(values, now_ms(), ", ".join(str(path) for path in paths.values()))


def _resolve_topic(topic: str | None, topics: Sequence[str]) -> str:
    if topic is None and len(topics) > 1:
        raise TrialInputError(
            f"the pipeline reads {', '.join(topics)}. Name the topic: --from {topics[0]}=FILE"
        )
    if topic is not None and topic not in topics:
        raise TrialInputError(explain_unknown_name("topic", topic, topics))
    return topic or topics[0]


def _iter_values(topic: str, path: Path) -> Iterator[bytes]:
    """Yield the records of a file as JSON."""
    # The format of the topic does not matter here: a file has the records themselves.
    contract = replace(load_contract(topic), encoding="json", deletes=None, envelope=())
    kind = SOURCE_KIND_BY_SUFFIX.get(path.suffix.lower(), DEFAULT_SOURCE_KIND)
    source = open_source(kind, contract, create_record_format(contract), now_ms, {"path": str(path)})
    return chain.from_iterable(batch.values for batch in source.read(None))


def _make_samples(pipeline: str, topics: Sequence[str], limit: int) -> _TrialInput:
    demo = load_demo(pipeline)
    values: dict[str, Sequence[bytes]] = {}
    clock_ms = 0
    for topic in topics:
        records = build_timed_records(topic, demo, len(topics))[:limit]
        encode: Callable[[Any], bytes] = json_codec(load_contract(topic)).encode
        values[topic] = [encode(timed.record) for timed in records]
        clock_ms = max([clock_ms, *(timed.sent_at_ms for timed in records)])
    return _TrialInput(values, clock_ms, "generated sample records")
