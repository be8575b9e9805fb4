"""The three word counts say the same of the same lines, live, batch by batch."""

import re
from collections import Counter
from itertools import islice
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import BEGAN, Fields, batches

from penstock.conformance.reference import Evaluator, Pane
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.lines import LineGenerator
from penstock.pipelines import catalog

LINES, RATE = 300, 4


def sent() -> list[tuple[int, Fields]]:
    """Lines that come before the bound, in the disorder of the generator."""
    times = make_even_send_times(BEGAN, RATE)
    lines = LineGenerator(seed=5)
    made = enumerate(islice(lines.generate_records(0, times), LINES))
    found = [(times(number), msgspec.to_builtins(line)) for number, line in made]
    return [
        (at, fields) for at, fields in found if at - fields["at"] <= lines.contract.max_out_of_orderness_ms
    ]


def words(fields: Fields) -> list[dict[str, Any]]:
    return [{**fields, "word": word} for word in re.findall(r"\w+", fields["text"].lower())]


def panes(name: str) -> list[Pane]:
    evaluator = Evaluator(catalog.load_plan(name), words)
    return [
        pane
        for batch in batches(sent(), "lines", 1_000)
        for pane in evaluator.run(batch).panes
        if pane.kind == "insert"
    ]


def test_what_enters_and_leaves_adds_up_to_what_is_counted_anew() -> None:
    anew = {
        (pane.key, pane.start, pane.clock): dict(pane.values)["times"]
        for pane in panes("word_count")
        if pane.timing == "on_time"
    }
    told = (
        dict(pane.values) | {"key": pane.key, "clock": pane.clock} for pane in panes("word_count_incremental")
    )
    assert {(row["key"], row["begins"], row["clock"]): row["times"] for row in told} == anew
    assert len(anew) > 100


def test_the_running_count_ends_where_all_words_are_counted() -> None:
    totals = {pane.key: dict(pane.values)["times"] for pane in panes("word_totals")}
    said = Counter((row["word"],) for _, fields in sent() for row in words(fields))
    assert totals == said
