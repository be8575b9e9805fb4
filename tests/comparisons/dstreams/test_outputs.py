"""What DStreams keep, print and save of a running count, and the table here of a stream stopped in the middle."""

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
from tests.pipelines.stored import create_memory_source

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
PATIENCE_S = 300
Counts = Mapping[str, int]


class Done:
    """How far the batches are, and who waits for them."""

    def __init__(self) -> None:
        self.batches = 0
        self.changed = threading.Condition()

    def until(self, batches: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.batches >= batches, PATIENCE_S), self.batches


DONE = Done()


def over(time: Any, _rdd: Any) -> None:
    """Note that a batch is over; the checkpoint keeps this function by its name."""
    with DONE.changed:
        DONE.batches = round(time.timestamp())
        DONE.changed.notify_all()


@dataclass(frozen=True)
class Told:
    """What was printed and saved of each batch, by its second."""

    printed: Mapping[int, Counts]
    saved: Mapping[int, Counts]


def running_counts(ssc: "StreamingContext", books: Path) -> "DStream[tuple[str, int]]":
    """The counts of the page, over files."""
    pairs = ssc.textFileStream(str(books)).flatMap(lambda line: line.split()).map(lambda word: (word, 1))
    return pairs.updateStateByKey(lambda new, old: (old or 0) + len(new))


def put(books: Path) -> None:
    """A file for each batch that has lines, changed in the middle of its second."""
    books.mkdir()
    for number, lines in enumerate(INPUT_BATCHES):
        if lines:
            book = books / f"book-{number}"
            book.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            os.utime(book, (number + 0.5, number + 0.5))


@contextmanager
def at_work(ssc: "StreamingContext", until: int) -> "Iterator[None]":
    """Run batches until so many are over, and cut it off."""
    try:
        ssc.start()
        advance_clock(ssc, until)
        DONE.until(until)
        yield
    finally:
        ssc.stop(stopSparkContext=False, stopGraceFully=False)


@pytest.fixture(scope="module")
def theirs(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What is told when the context is stopped in the middle, and made again from its checkpoint."""
    from pyspark.streaming import StreamingContext

    folder = tmp_path_factory.mktemp("kept")
    put(folder / "books")

    def set_up() -> StreamingContext:
        ssc = StreamingContext(spark.sparkContext, 1)
        counts = running_counts(ssc, folder / "books")
        counts.pprint()
        counts.saveAsTextFiles(str(folder / "counts"))
        counts.foreachRDD(over)
        return ssc

    printed = io.StringIO()
    with use_manual_clock(spark), redirect_stdout(printed):
        for until in (STOPPED_AFTER, len(INPUT_BATCHES)):
            with at_work(StreamingContext.getOrCreate(str(folder / "checkpoint"), set_up), until):
                pass
    return Told(printed_by_second(printed.getvalue()), saved_by_second(folder))


def printed_by_second(text: str) -> Mapping[int, Counts]:
    """The blocks that `pprint` printed. Seconds stand for the years after 1970 began."""
    from datetime import datetime

    blocks = re.findall(r"^-+\nTime: (.*)\n-+\n((?:\(.*\n)*)", text, re.MULTILINE)
    return {
        round(datetime.fromisoformat(time).timestamp()): counts_in(lines.splitlines())
        for time, lines in blocks
    }


def saved_by_second(folder: Path) -> Mapping[int, Counts]:
    """The folders that `saveAsTextFiles` left."""
    return {
        int(saved.name.removeprefix("counts-")) // SECOND_MS: counts_in(
            line for part in saved.glob("part-*") for line in part.read_text("utf-8").splitlines()
        )
        for saved in folder.glob("counts-*")
    }


def counts_in(lines: Any) -> Counts:
    return dict(ast.literal_eval(line) for line in lines)


@pytest.fixture(scope="module")
def ours(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Counts]:
    """What `penstock table show` shows after each batch of a stream that is stopped in the middle, too."""
    folder, shown = tmp_path_factory.mktemp("counts"), {}
    words = read("lines").flat_map(words_of, returns={"word": "STRING"})
    counts = (
        words.key("word").aggregate(n=count()).window(global_window()).trigger(repeatedly(after_count(1)))
    )
    plan = counts.write("counts", mode="latest").to_plan("counts")
    values = [
        json.dumps({"at": number * SECOND_MS, "text": text}).encode()
        for number, lines in enumerate(INPUT_BATCHES)
        for text in lines
    ]
    held, begin = create_memory_source(spark, {"lines": values}), 0
    for number, lines in enumerate(INPUT_BATCHES):
        if number in (0, STOPPED_AFTER):
            run = BoundedRun(plan, spark, BoundedRunConfig(folder / "stream", folder), lambda _: None)
        clock, end = (number + 1) * SECOND_MS, begin + len(lines)
        if lines:
            run.run_batch(number, clock, [OffsetRange("lines", 0, begin, end)], held, None, {})
        else:
            run.run_tick(clock)
        shown[number + 1], begin = shown_of(folder), end
    return shown


def words_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"word": word} for word in line["text"].split()]


def shown_of(warehouse: Path) -> Counts:
    """The table of counts, as the command line shows it."""
    done = CliRunner().invoke(
        penstock, ["table", "show", "counts", "--json"], env={"PENSTOCK_WAREHOUSE": str(warehouse)}
    )
    assert done.exit_code == 0, done.output
    return {row["word"]: row["n"] for row in json.loads(done.stdout)}


def test_what_is_printed_of_each_batch_is_what_the_table_shows(
    theirs: Told, ours: Mapping[int, Counts]
) -> None:
    assert theirs.printed == ours


def test_what_is_saved_of_each_batch_is_what_the_table_shows(
    theirs: Told, ours: Mapping[int, Counts]
) -> None:
    assert theirs.saved == ours


def test_a_stream_that_is_stopped_goes_on_with_the_counts_that_it_kept(
    theirs: Told, ours: Mapping[int, Counts]
) -> None:
    said = [word for lines in INPUT_BATCHES for line in lines for word in line.split()]
    whole = {word: said.count(word) for word in said}
    assert theirs.saved[len(INPUT_BATCHES)] == ours[len(INPUT_BATCHES)] == whole
    assert ours[STOPPED_AFTER] != whole
