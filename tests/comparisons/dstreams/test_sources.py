"""What DStreams hear of a socket and of a folder is what comes into a topic from them here."""

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
PATIENCE_S = 120


class Heard:
    """The elements of a stream of theirs, and who waits for them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changed = threading.Condition()

    def note(self, _time: Any, rdd: Any) -> None:
        with self.changed:
            self.lines += rdd.collect()
            self.changed.notify_all()

    def until(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.lines) >= count, PATIENCE_S), len(self.lines)


@pytest.fixture
def ssc(spark: "SparkSession") -> "Iterator[StreamingContext]":
    from pyspark.streaming import StreamingContext

    if spark.sparkContext.defaultParallelism < 2:
        pytest.skip("a socket of DStreams holds one core, and its batches want another")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        context = StreamingContext(spark.sparkContext, 1)
    yield context
    context.stop(stopSparkContext=False, stopGraceFully=False)


def in_topic(broker: LocalBroker, kind: str, place: str, folder: Path) -> list[str]:
    """The texts that come into a topic of a source's own."""
    contract = replace(load_contract("lines"), topic=f"heard-of-a-{kind}")
    ensure_topics(broker.bootstrap, [contract])
    index = folder / "index" if kind == "text" else None
    options = {find_source_kind(kind).location: place, "follow": True} | (
        {"text": True} if kind == "socket" else {}
    )
    source = open_source(
        kind, contract, create_record_format(contract), lambda: time.time_ns() // 1_000_000, options, index
    )
    feed = Feed(source, contract, broker.bootstrap, folder / "ledger", lambda: time.time_ns() // 1_000_000)
    assert feed.run(threading.Event(), limits=FeedLimits(count=len(LINES))).acknowledged_records == len(LINES)
    return [json.loads(read.value)["text"] for read in read_topic(broker.bootstrap, contract.topic)]


def test_lines_of_a_socket_are_heard_by_both(
    ssc: "StreamingContext", broker: LocalBroker, tmp_path: Path
) -> None:
    done = threading.Event()

    def serve(client: Any) -> None:
        client.sendall("".join(f"{line}\n" for line in LINES).encode())
        done.wait(PATIENCE_S)  # who hangs up is connected to again, and would say it all once more

    heard = Heard()
    with run_line_server(serve) as port, run_line_server(serve) as other:
        ssc.socketTextStream("127.0.0.1", port).foreachRDD(heard.note)
        ssc.start()
        heard.until(len(LINES))
        ours = in_topic(broker, "socket", f"127.0.0.1:{other}", tmp_path)
        done.set()
    assert Counter(ours) == Counter(heard.lines) == Counter(LINES)


def test_files_that_are_put_into_a_folder_are_heard_by_both(
    ssc: "StreamingContext", broker: LocalBroker, tmp_path: Path
) -> None:
    folder, heard = tmp_path / "books", Heard()
    folder.mkdir()
    ssc.textFileStream(str(folder)).foreachRDD(heard.note)
    ssc.start()
    for number, lines in enumerate((LINES[:200], LINES[200:])):
        put(folder, f"book-{number}.txt", lines)
    heard.until(len(LINES))
    ours = in_topic(broker, "text", str(folder), tmp_path)
    assert Counter(ours) == Counter(heard.lines) == Counter(LINES)


def put(folder: Path, name: str, lines: list[str]) -> None:
    """Have a file appear whole, and so new that theirs, which looks at times of change, cannot pass it by."""
    written = folder.parent / name
    written.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    changed = time.time() + 2
    os.utime(written, (changed, changed))
    shutil.move(written, folder / name)
