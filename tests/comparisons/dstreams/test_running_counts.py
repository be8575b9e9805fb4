"""A running count that is stopped and resumed: DStreams' output and the table of a stream are equal."""

import ast
import io
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.comparisons.dstreams.input_batches import (
    INPUT_BATCHES,
    SECOND_MS,
    advance_clock,
    use_manual_clock,
)
from tests.pipelines.memory_topics import create_memory_source

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.bounded_run import BoundedRun
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.platform.cli.main import penstock
from penstock.stream import after_count, count, global_window, read, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import DStream, StreamingContext

pytestmark = pytest.mark.spark
STOPPED_AFTER = 4
BATCH_TIMEOUT_S = 300
Counts = Mapping[str, int]


class BatchProgress:
    """The number of completed batches, for threads that wait for them."""

    def __init__(self) -> None:
        self.batches = 0
        self.changed = threading.Condition()

    def wait_for(self, batches: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.batches >= batches, BATCH_TIMEOUT_S), self.batches


PROGRESS = BatchProgress()


def note_batch(time: Any, _rdd: Any) -> None:
    """Note that a batch is complete; the checkpoint refers to this function by name."""
    with PROGRESS.changed:
        PROGRESS.batches = round(time.timestamp())
        PROGRESS.changed.notify_all()


@dataclass(frozen=True)
class DStreamOutput:
    """The counts that were printed and saved for each batch, by its second."""

    printed: Mapping[int, Counts]
    saved: Mapping[int, Counts]


def count_words(ssc: "StreamingContext", books: Path) -> "DStream[tuple[str, int]]":
    """Count words of files, as on the page."""
    pairs = ssc.textFileStream(str(books)).flatMap(lambda line: line.split()).map(lambda word: (word, 1))
    return pairs.updateStateByKey(lambda new, old: (old or 0) + len(new))


def write_books(books: Path) -> None:
    """Write a file for each batch with lines, with a time in the middle of its second."""
    books.mkdir()
    for number, lines in enumerate(INPUT_BATCHES):
        if lines:
            book = books / f"book-{number}"
            book.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            os.utime(book, (number + 0.5, number + 0.5))


@contextmanager
def run_batches(ssc: "StreamingContext", batch_count: int) -> "Iterator[None]":
    """Run the given number of batches, and stop without draining."""
    try:
        ssc.start()
        advance_clock(ssc, batch_count)
        PROGRESS.wait_for(batch_count)
        yield
    finally:
        ssc.stop(stopSparkContext=False, stopGraceFully=False)


@pytest.fixture(scope="module")
def dstream_output(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> DStreamOutput:
    """The output of a context that is stopped and restored from its checkpoint."""
    from pyspark.streaming import StreamingContext

    folder = tmp_path_factory.mktemp("kept")
    write_books(folder / "books")

    def set_up() -> StreamingContext:
        ssc = StreamingContext(spark.sparkContext, 1)
        counts = count_words(ssc, folder / "books")
        counts.pprint()
        counts.saveAsTextFiles(str(folder / "counts"))
        counts.foreachRDD(note_batch)
        return ssc

    printed = io.StringIO()
    with use_manual_clock(spark), redirect_stdout(printed):
        for batch_count in (STOPPED_AFTER, len(INPUT_BATCHES)):
            with run_batches(StreamingContext.getOrCreate(str(folder / "checkpoint"), set_up), batch_count):
                pass
    return DStreamOutput(parse_printed(printed.getvalue()), read_saved(folder))


def parse_printed(text: str) -> Mapping[int, Counts]:
    """Parse the blocks that `pprint` printed."""
    from datetime import datetime

    blocks = re.findall(r"^-+\nTime: (.*)\n-+\n((?:\(.*\n)*)", text, re.MULTILINE)
    return {
        round(datetime.fromisoformat(time).timestamp()): parse_counts(lines.splitlines())
        for time, lines in blocks
    }


def read_saved(folder: Path) -> Mapping[int, Counts]:
    """Read the folders that `saveAsTextFiles` wrote."""
    return {
        int(saved.name.removeprefix("counts-")) // SECOND_MS: parse_counts(
            line for part in saved.glob("part-*") for line in part.read_text("utf-8").splitlines()
        )
        for saved in folder.glob("counts-*")
    }


def parse_counts(lines: Any) -> Counts:
    return dict(ast.literal_eval(line) for line in lines)


@pytest.fixture(scope="module")
def table_counts(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Counts]:
    """The output of `penstock table show` after each batch of a stream that is stopped and resumed."""
    folder, shown_counts = tmp_path_factory.mktemp("counts"), {}
    words = read("lines").flat_map(split_words, returns={"word": "STRING"})
    counts = (
        words.key("word").aggregate(n=count()).window(global_window()).trigger(repeatedly(after_count(1)))
    )
    plan = counts.write("counts", mode="latest").to_plan("counts")
    values = [
        json.dumps({"at": number * SECOND_MS, "text": text}).encode()
        for number, lines in enumerate(INPUT_BATCHES)
        for text in lines
    ]
    memory_source, start = create_memory_source(spark, {"lines": values}), 0
    for number, lines in enumerate(INPUT_BATCHES):
        if number in (0, STOPPED_AFTER):
            run = BoundedRun(plan, spark, BoundedRunConfig(folder / "stream", folder), lambda _: None)
        clock, end = (number + 1) * SECOND_MS, start + len(lines)
        if lines:
            run.run_batch(number, clock, [OffsetRange("lines", 0, start, end)], memory_source, None, {})
        else:
            run.run_tick(clock)
        shown_counts[number + 1], start = read_table(folder), end
    return shown_counts


def split_words(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"word": word} for word in line["text"].split()]


def read_table(warehouse: Path) -> Counts:
    """Read the table of counts through the command line."""
    result = CliRunner().invoke(
        penstock, ["table", "show", "counts", "--json"], env={"PENSTOCK_WAREHOUSE": str(warehouse)}
    )
    assert result.exit_code == 0, result.output
    return {row["word"]: row["n"] for row in json.loads(result.stdout)}


def test_printed_counts_equal_those_of_the_table(
    dstream_output: DStreamOutput, table_counts: Mapping[int, Counts]
) -> None:
    assert dstream_output.printed == table_counts


def test_saved_counts_equal_those_of_the_table(
    dstream_output: DStreamOutput, table_counts: Mapping[int, Counts]
) -> None:
    assert dstream_output.saved == table_counts


def test_a_stopped_stream_resumes_with_its_counts(
    dstream_output: DStreamOutput, table_counts: Mapping[int, Counts]
) -> None:
    words = [word for lines in INPUT_BATCHES for line in lines for word in line.split()]
    expected = {word: words.count(word) for word in words}
    assert dstream_output.saved[len(INPUT_BATCHES)] == table_counts[len(INPUT_BATCHES)] == expected
    assert table_counts[STOPPED_AFTER] != expected
