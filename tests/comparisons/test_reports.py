"""Reports of comparisons: equal and different rows, and the page with all results of both systems."""

import re
from collections import Counter
from typing import Any

from tests.comparisons.beam.pane_comparison import summarize_panes
from tests.comparisons.dstreams.batch_comparison import summarize_batches

PANE = {"key": "to", "value": 2, "window": [0, 10], "pane": 0, "timing": "early"}


def test_panes_that_only_one_system_emits_are_reported_and_on_the_page() -> None:
    late = {**PANE, "timing": "late"}
    report = summarize_panes({"same": ([PANE, late], [late, PANE]), "other": ([PANE], [])})
    assert report.rows == [("same", 2, 2, "equal"), ("other", 1, 0, "different")]
    assert not report.is_equal
    page = "\n".join(report.page_lines)
    assert len(re.findall(r"\| 1 \| 1 \|$", page, re.MULTILINE)) == 2
    assert len(re.findall(r"\| 1 \| 0 \|$", page, re.MULTILINE)) == 1


def test_an_operation_with_another_result_in_one_batch_is_reported() -> None:
    dstream_batches = [Counter({("to", 2): 1}), Counter[tuple[Any, ...]]()]
    our_batches = [dstream_batches[0], Counter({("be",): 2})]
    report = summarize_batches(
        {"map": (dstream_batches, dstream_batches), "count": (dstream_batches, our_batches)}
    )
    assert report.rows == [("map", 2, 1, "equal"), ("count", 2, 1, "different")]
    assert not report.is_equal
    assert "| 1 |  | be<br>be |" in report.page_lines
