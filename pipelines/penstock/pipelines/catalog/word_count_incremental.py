"""The counts of `word_count`, computed incrementally: add what enters the window, subtract what leaves it.

The state of a word is its count per slide of ten seconds, and the sum of the last three slides. When the watermark
passes a slide, its count is added and the oldest count is subtracted. So the work does not depend on the window
size.
"""

from dataclasses import dataclass, field

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.pipelines.catalog.word_count import SPLIT_WORDS_SQL
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

SLIDE_MS = 10_000
SLIDES_PER_WINDOW = 3
"""The length of a window in slides."""


@dataclass(frozen=True)
class SlidingCounts:
    """The counts by slide, and their sum over the last emitted window."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0
    next_slide: int = 0
    """The slide after the last emitted window."""


def slide_window_counts(context: KeyContext[SlidingCounts]) -> KeyUpdate[SlidingCounts]:
    """Return a row for each complete window that contains the word."""
    state = context.state or SlidingCounts()
    counts, total, next_slide = dict(state.counts), state.total, state.next_slide
    for record in context.records:
        slide = record.time // SLIDE_MS
        if slide >= next_slide:
            counts[slide] = counts.get(slide, 0) + 1
        elif slide > next_slide - SLIDES_PER_WINDOW:
            counts[slide] = counts.get(slide, 0) + 1
            total += 1  # late for emitted windows, on time for the next ones
    rows = []
    while counts:
        next_slide = max(next_slide, min(counts))
        if (next_slide + 1) * SLIDE_MS > context.watermark:
            break
        total += counts.get(next_slide, 0) - counts.pop(next_slide - SLIDES_PER_WINDOW, 0)
        next_slide += 1
        if total:
            rows.append(
                OutputRow(
                    {"times": total, "begins": (next_slide - SLIDES_PER_WINDOW) * SLIDE_MS},
                    next_slide * SLIDE_MS - 1,
                )
            )
    return KeyUpdate(
        SlidingCounts(counts, total, next_slide), rows, [Timer((next_slide + 1) * SLIDE_MS)] if counts else []
    )


word_count_incremental = (
    read("lines", idle_after="5 seconds")
    .sql(SPLIT_WORDS_SQL)
    .key("word")
    .stateful(
        slide_window_counts,
        state=SlidingCounts,
        returns={"times": "BIGINT", "begins": "BIGINT"},
        forget_after="10 minutes",
    )
    .write("word_count_incremental", mode="log")
)

demo = Demo(rate=2, last="90 seconds", step="3 seconds", key=("the",))
