"""Both word counts over lines of a socket match plain Python."""

import json
import re
import threading
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.ingestion.servers import run_line_server
from tests.ingestion.topic_reading import read_topic
from tests.pipelines.engine.spark.stream_runner import StreamRunner

from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.source_discovery import open_source
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
START_MS, LINES, TOPIC = 1_767_603_600_000, 60, "socket-words"
TEXTS = ("To be, or not to be:", "that is the question.", "", "Wört für Wört, to be")
SIZE, SLIDE = 30_000, 10_000


@pytest.fixture(scope="module")
def lines(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Feed lines from a server that sends one line per connection; return the records with their partitions."""
    contract = replace(load_contract("lines"), topic=TOPIC)
    ensure_topics(broker.bootstrap, [contract])
    texts = (TEXTS[number % len(TEXTS)] for number in count())
    # Each call of the clock adds a second, and each line calls it three times.
    ticks = count(START_MS, 1_000)
    with run_line_server(lambda client: client.sendall(f"{next(texts)}\n".encode())) as port:
        options = {"address": f"127.0.0.1:{port}", "text": True, "follow": True}
        source = open_source("socket", contract, create_record_format(contract), lambda: next(ticks), options)
        ledger = tmp_path_factory.mktemp("socket")
        feed = Feed(
            source, contract, broker.bootstrap, ledger, lambda: START_MS, partitioner_name="round-robin"
        )
        summary = feed.run(threading.Event(), limits=FeedLimits(count=LINES))
    assert summary.acknowledged_records == LINES
    lines_read = [
        {"partition": read.partition, **json.loads(read.value)}
        for read in read_topic(broker.bootstrap, TOPIC)
    ]
    assert Counter(each["text"] for each in lines_read) == Counter(
        TEXTS[n % len(TEXTS)] for n in range(LINES)
    )
    return lines_read


def expect_counts(lines: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    """Count each word in each window that the watermark has passed."""
    newest = {each["partition"]: each["at"] for each in sorted(lines, key=lambda each: each["at"])}
    assert len(newest) == 3, "a partition without lines holds the watermark back"
    watermark = min(newest.values()) - load_contract("lines").max_out_of_orderness_ms
    windows: Counter[tuple[str, int]] = Counter()
    for line in lines:
        last_start = line["at"] - line["at"] % SLIDE
        for word in re.findall(r"\w+", line["text"].lower()):
            windows.update((word, last_start - shift) for shift in range(0, SIZE, SLIDE))
    return Counter({window: n for window, n in windows.items() if window[1] + SIZE <= watermark})


def load_plan(name: str) -> Plan:
    plan = catalog.load_plan(name)
    (source,) = plan.sources
    return replace(plan, sources=(replace(source, origin=TopicOrigin(TOPIC)),))


def test_word_count_over_a_socket_matches_python(
    spark: "SparkSession", broker: LocalBroker, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    runner = StreamRunner(load_plan("word_count"), spark, broker, tmp_path)
    runner.run_until_read(LINES)
    rows = runner.table("latest/word_count").to_pylist()
    counts = {(row["word"], to_millis(row["window_start"])): row["times"] for row in rows}
    assert counts == expect_counts(lines)
    assert len(counts) > 60


def test_word_count_incremental_over_a_socket_matches_python(
    spark: "SparkSession", broker: LocalBroker, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    runner = StreamRunner(load_plan("word_count_incremental"), spark, broker, tmp_path)
    runner.run_until_read(LINES)
    rows = runner.table("panes/word_count_incremental").to_pylist()
    counts = {(row["word"], row["begins"]): row["times"] for row in rows}
    assert counts == expect_counts(lines)
    assert len(rows) == len(counts)


def to_millis(time: Any) -> int:
    return round(time.timestamp() * 1000)
