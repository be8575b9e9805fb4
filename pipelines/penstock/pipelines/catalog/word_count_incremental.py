"""The same counts as `word_count`, by adding what enters a window and subtracting what leaves it.

For each word the counts of ten seconds are kept, and the sum of the last three. When the watermark says that ten
seconds are over, their count is added, and that of the ten seconds which are now too old is taken away. What a
window holds is never counted again, however long it is.
"""

from dataclasses import dataclass, field

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.pipelines.catalog.word_count import SPLIT_WORDS_SQL
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

SLIDE_MS = 10_000
SLIDES_PER_WINDOW = 3
"""A window is so many slides long."""


@dataclass(frozen=True)
class SlidingCounts:
    """The counts by slide, and their sum over the window that was told last."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0
    next_slide: int = 0
    """The slide after the window that was told last."""


def slide_window_counts(context: KeyContext[SlidingCounts]) -> KeyUpdate[SlidingCounts]:
    """A row for each window that is over and in which the word was said."""
    state = context.state or SlidingCounts()
    counts, total, next_slide = dict(state.counts), state.total, state.next_slide
    for record in context.records:
        slide = record.time // SLIDE_MS
        if slide >= next_slide:
            counts[slide] = counts.get(slide, 0) + 1
        elif slide > next_slide - SLIDES_PER_WINDOW:
            counts[slide] = counts.get(slide, 0) + 1
            total += 1  # late for what was told, and in time for what is still to come
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
