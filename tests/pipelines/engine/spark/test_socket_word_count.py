"""Lines of a socket, through a topic, counted in windows: both ways of counting say what plain Python says."""

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

from penstock.engine.plan import Plan, TopicOrigin
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
START_MS, LINES, TOPIC = 1_767_603_600_000, 60, "said-over-a-socket"
TEXTS = ("To be, or not to be:", "that is the question.", "", "Wört für Wört, to be")
SIZE, SLIDE = 30_000, 10_000


@pytest.fixture(scope="module")
def said(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What came of a server that says one line to whoever connects, and hangs up; with the partition of each."""
    contract = replace(load_contract("lines"), topic=TOPIC)
    ensure_topics(broker.bootstrap, [contract])
    texts = (TEXTS[number % len(TEXTS)] for number in count())
    # Each reading of this clock is a second after the one before: with a line they are three.
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
    found = [
        {"partition": read.partition, **json.loads(read.value)}
        for read in read_topic(broker.bootstrap, TOPIC)
    ]
    assert Counter(each["text"] for each in found) == Counter(TEXTS[n % len(TEXTS)] for n in range(LINES))
    return found


def counted(said: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    """How often each word was said in each window that the watermark has passed."""
    newest = {each["partition"]: each["at"] for each in sorted(said, key=lambda each: each["at"])}
    assert len(newest) == 3, "each partition has lines, so none holds the watermark back"
    watermark = min(newest.values()) - load_contract("lines").max_out_of_orderness_ms
    windows: Counter[tuple[str, int]] = Counter()
    for line in said:
        last = line["at"] - line["at"] % SLIDE
        for word in re.findall(r"\w+", line["text"].lower()):
            windows.update((word, last - back) for back in range(0, SIZE, SLIDE))
    return Counter({place: n for place, n in windows.items() if place[1] + SIZE <= watermark})


def over_the_topic(name: str) -> Plan:
    plan = catalog.load_plan(name)
    (source,) = plan.sources
    return replace(plan, sources=(replace(source, origin=TopicOrigin(TOPIC)),))


def test_words_over_a_socket_are_counted_in_windows_that_slide(
    spark: "SparkSession", broker: LocalBroker, said: list[dict[str, Any]], tmp_path: Path
) -> None:
    runner = StreamRunner(over_the_topic("word_count"), spark, broker, tmp_path)
    runner.run_until_read(LINES)
    rows = runner.table("latest/word_count").to_pylist()
    shown = {(row["word"], millis(row["window_start"])): row["times"] for row in rows}
    assert shown == counted(said)
    assert len(shown) > 60


def test_adding_what_enters_and_taking_away_what_leaves_gives_the_same_numbers(
    spark: "SparkSession", broker: LocalBroker, said: list[dict[str, Any]], tmp_path: Path
) -> None:
    runner = StreamRunner(over_the_topic("word_count_incremental"), spark, broker, tmp_path)
    runner.run_until_read(LINES)
    rows = runner.table("panes/word_count_incremental").to_pylist()
    shown = {(row["word"], row["begins"]): row["times"] for row in rows}
    assert shown == counted(said)
    assert len(rows) == len(shown)


def millis(moment: Any) -> int:
    return round(moment.timestamp() * 1000)
