"""The same counts as `word_count`, by adding what enters a window and subtracting what leaves it.

For each word the counts of ten seconds are kept, and the sum of the last three. When the watermark says that ten
seconds are over, their count is added, and that of the ten seconds which are now too old is taken away. What a
window holds is never counted again, however long it is.
"""

from dataclasses import dataclass, field

from penstock.pipelines.catalog.word_count import WORDS
from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import read
from penstock.pipelines.remembering import Answer, Call, Row, Timer

SLIDE = 10_000
SLIDES = 3
"""A window is so many slides long."""


@dataclass(frozen=True)
class Moving:
    """The counts by slide, and their sum over the window that was told last."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0
    told: int = 0
    """The slide after the window that was told last."""


def moved(call: Call[Moving]) -> Answer[Moving]:
    """A row for each window that is over and in which the word was said."""
    known = call.state or Moving()
    counts, total, told = dict(known.counts), known.total, known.told
    for each in call.records:
        slide = each.time // SLIDE
        if slide >= told:
            counts[slide] = counts.get(slide, 0) + 1
        elif slide > told - SLIDES:
            counts[slide] = counts.get(slide, 0) + 1
            total += 1  # late for what was told, and in time for what is still to come
    rows = []
    while counts:
        told = max(told, min(counts))
        if (told + 1) * SLIDE > call.watermark:
            break
        total += counts.get(told, 0) - counts.pop(told - SLIDES, 0)
        told += 1
        if total:
            rows.append(Row({"times": total, "begins": (told - SLIDES) * SLIDE}, told * SLIDE - 1))
    return Answer(Moving(counts, total, told), rows, [Timer((told + 1) * SLIDE)] if counts else [])


word_count_incremental = (
    read("lines", idle_after="5 seconds")
    .sql(WORDS)
    .key("word")
    .remember(moved, state=Moving, returns={"times": "BIGINT", "begins": "BIGINT"}, forget_after="10 minutes")
    .write("word_count_incremental", mode="log")
)

demo = Demo(rate=2, last="90 seconds", step="3 seconds", key=("the",))
