"""The three word counts agree on the same lines in each batch."""

import re
from collections import Counter
from itertools import islice
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import START_MS, Fields, split_by_send_time

from penstock.conformance.reference import Evaluator, Pane
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.lines import LineGenerator
from penstock.pipelines import catalog

LINES, RATE = 300, 4


def generate_lines() -> list[tuple[int, Fields]]:
    """Generate lines with their send times, without those beyond the maximum out-of-orderness."""
    times = make_even_send_times(START_MS, RATE)
    lines = LineGenerator(seed=5)
    made = enumerate(islice(lines.generate_records(0, times), LINES))
    lines_with_times = [(times(number), msgspec.to_builtins(line)) for number, line in made]
    return [
        (at, fields)
        for at, fields in lines_with_times
        if at - fields["at"] <= lines.contract.max_out_of_orderness_ms
    ]


def split_words(fields: Fields) -> list[dict[str, Any]]:
    return [{**fields, "word": word} for word in re.findall(r"\w+", fields["text"].lower())]


def insert_panes(name: str) -> list[Pane]:
    evaluator = Evaluator(catalog.load_plan(name), split_words)
    return [
        pane
        for batch in split_by_send_time(generate_lines(), "lines", 1_000)
        for pane in evaluator.run(batch).panes
        if pane.kind == "insert"
    ]


def test_incremental_counts_equal_counts_of_whole_windows() -> None:
    recounted = {
        (pane.key, pane.start, pane.clock): dict(pane.values)["times"]
        for pane in insert_panes("word_count")
        if pane.timing == "on_time"
    }
    incremental_rows = (
        dict(pane.values) | {"key": pane.key, "clock": pane.clock}
        for pane in insert_panes("word_count_incremental")
    )
    assert {(row["key"], row["begins"], row["clock"]): row["times"] for row in incremental_rows} == recounted
    assert len(recounted) > 100


def test_the_last_running_counts_are_the_counts_of_all_words() -> None:
    totals = {pane.key: dict(pane.values)["times"] for pane in insert_panes("word_totals")}
    expected = Counter((row["word"],) for _, fields in generate_lines() for row in split_words(fields))
    assert totals == expected
