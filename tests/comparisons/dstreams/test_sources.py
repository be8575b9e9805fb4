"""DStreams and feeds read the same lines from a socket and from a folder."""

import json
import os
import shutil
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.ingestion.servers import run_line_server
from tests.ingestion.topic_reading import read_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.source_discovery import find_source_kind, open_source
from penstock.ingestion.topics import ensure_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import StreamingContext

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
LINES = [f"line {number}" for number in range(500)] + ["", "Wört für Wört", "the last one"]
READ_TIMEOUT_S = 120


class DStreamLines:
    """The elements of a DStream, for threads that wait for them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changed = threading.Condition()

    def note(self, _time: Any, rdd: Any) -> None:
        with self.changed:
            self.lines += rdd.collect()
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.lines) >= count, READ_TIMEOUT_S), len(self.lines)


@pytest.fixture
def ssc(spark: "SparkSession") -> "Iterator[StreamingContext]":
    from pyspark.streaming import StreamingContext

    if spark.sparkContext.defaultParallelism < 2:
        pytest.skip("a socket of DStreams occupies one core, and its batches need another")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        context = StreamingContext(spark.sparkContext, 1)
    yield context
    context.stop(stopSparkContext=False, stopGraceFully=False)


def feed_topic(broker: LocalBroker, kind: str, location: str, folder: Path) -> list[str]:
    """Feed a topic from a source, and return its texts."""
    contract = replace(load_contract("lines"), topic=f"read-from-{kind}")
    ensure_topics(broker.bootstrap, [contract])
    index = folder / "index" if kind == "text" else None
    options = {find_source_kind(kind).location: location, "follow": True} | (
        {"text": True} if kind == "socket" else {}
    )
    source = open_source(
        kind, contract, create_record_format(contract), lambda: time.time_ns() // 1_000_000, options, index
    )
    feed = Feed(source, contract, broker.bootstrap, folder / "ledger", lambda: time.time_ns() // 1_000_000)
    assert feed.run(threading.Event(), limits=FeedLimits(count=len(LINES))).acknowledged_records == len(LINES)
    return [json.loads(read.value)["text"] for read in read_topic(broker.bootstrap, contract.topic)]


def test_both_read_the_lines_of_a_socket(
    ssc: "StreamingContext", broker: LocalBroker, tmp_path: Path
) -> None:
    finished = threading.Event()

    def serve(client: Any) -> None:
        client.sendall("".join(f"{line}\n" for line in LINES).encode())
        finished.wait(READ_TIMEOUT_S)  # a closed connection is opened again, and would get all lines twice

    dstream_lines = DStreamLines()
    with run_line_server(serve) as port, run_line_server(serve) as feed_port:
        ssc.socketTextStream("127.0.0.1", port).foreachRDD(dstream_lines.note)
        ssc.start()
        dstream_lines.wait_for(len(LINES))
        fed = feed_topic(broker, "socket", f"127.0.0.1:{feed_port}", tmp_path)
        finished.set()
    assert Counter(fed) == Counter(dstream_lines.lines) == Counter(LINES)


def test_both_read_the_files_of_a_folder(
    ssc: "StreamingContext", broker: LocalBroker, tmp_path: Path
) -> None:
    folder, dstream_lines = tmp_path / "books", DStreamLines()
    folder.mkdir()
    ssc.textFileStream(str(folder)).foreachRDD(dstream_lines.note)
    ssc.start()
    for number, lines in enumerate((LINES[:200], LINES[200:])):
        move_file(folder, f"book-{number}.txt", lines)
    dstream_lines.wait_for(len(LINES))
    fed = feed_topic(broker, "text", str(folder), tmp_path)
    assert Counter(fed) == Counter(dstream_lines.lines) == Counter(LINES)


def move_file(folder: Path, name: str, lines: list[str]) -> None:
    """Move a complete file into the folder, with a time that DStreams accept as new."""
    new_file = folder.parent / name
    new_file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    modified_at = time.time() + 2
    os.utime(new_file, (modified_at, modified_at))
    shutil.move(new_file, folder / name)
