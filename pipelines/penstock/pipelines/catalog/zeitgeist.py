"""What people suddenly ask, or suddenly no longer ask: spikes and dips of search queries, told within seconds.

Queries are counted by the second they were asked in, once each. When the watermark says that a second is whole, the
last five of them are compared with what a model, kept for each query, expects of it. A question that comes when its
second was judged already, but is still compared, is learned from as if it had been in time; what was told stays.
"""

from dataclasses import dataclass, field, replace
from math import sqrt

from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import read
from penstock.pipelines.remembering import Answer, Call, Row, Timer

SECOND = 1_000
SPAN = 5
"""Seconds that are judged together."""
LEARNED = 20
"""Seconds that a model must have seen before it is believed."""
MEMORY = 30
"""Seconds after which a second counts about a third of what it did."""
UNUSUAL, USUAL = 7.0, 3.0
"""How far a count is off, in standard deviations: beyond the first a trend begins, within the second it is over.

It is twice the distance of the square roots: so the spread is about 1 for counts of any size.
"""
ACCEPTED = 60
"""Seconds after which what was unusual is what there is."""
FOREVER = 253_402_300_800_000
"""The end of the year 9999; a watermark beyond it is that of an input that has ended."""
WORTHLESS = 0.05
"""Questions a second below which nothing is expected, and the query is forgotten."""


@dataclass(frozen=True)
class Model:
    """What is expected of a query, and what came of it lately."""

    unjudged: dict[int, int] = field(default_factory=dict)
    """Questions by second, of seconds that may not be whole."""
    recent: tuple[int, ...] = ()
    """The last seconds that were judged, the newest at the end."""
    judged: int = 0
    """The second after these."""
    expected: float = 0.0
    seconds: int = 0
    trend: str = ""
    since: int = 0


def trends(call: Call[Model]) -> Answer[Model]:
    """A row for each trend that begins."""
    model = noted(call.state or Model(), [each.time // SECOND for each in call.records])
    rows: list[Row] = []
    while (second := next_whole(model, call.watermark)) is not None:
        count = model.unjudged.get(second, 0)
        model, told = judged(model, second, count)
        rows += told
        if model.seconds > LEARNED and model.expected < WORTHLESS and not model.unjudged:
            return Answer(None, rows, [])
    return Answer(model, rows, [Timer((max(model.judged, min(model.unjudged, default=0)) + 1) * SECOND)])


def noted(model: Model, seconds: list[int]) -> Model:
    """The model with new questions; those of a second that was judged are added there, if it is not long ago."""
    unjudged, recent, expected = dict(model.unjudged), list(model.recent), model.expected
    for second in seconds:
        back = model.judged - second
        if not model.seconds or back <= 0:
            unjudged[second] = unjudged.get(second, 0) + 1
        elif back <= len(recent):
            recent[-back] += 1
            expected += 0 if model.trend else weight(model.seconds, back)
    return replace(model, unjudged=unjudged, recent=tuple(recent), expected=expected)


def weight(seconds: int, back: int) -> float:
    """What one question more, so many seconds ago, adds to the mean of all of them; older ones fade from it."""
    faded = max(0, min(back - 1, seconds - MEMORY))
    return (1 - 1 / MEMORY) ** faded / min(seconds, MEMORY)


def next_whole(model: Model, watermark: int) -> int | None:
    """The next second to judge, once the watermark has passed its end.

    The end of all input is no dip: then nothing is judged behind a query's last second.
    """
    first = min(model.unjudged, default=None)
    second = model.judged if model.seconds else first
    if second is None or (second + 1) * SECOND > watermark:
        return None
    return second if first is not None or watermark < FOREVER else None


def judged(model: Model, second: int, count: int) -> tuple[Model, list[Row]]:
    """The model after a second that is whole, and a row where a trend begins with it."""
    recent = (*model.recent, count)[-SPAN:]
    came, expected = sum(recent), model.expected * len(recent)
    off = 2 * (sqrt(came) - sqrt(expected))
    begins = model.seconds >= LEARNED and not model.trend and abs(off) > UNUSUAL
    accepted = bool(model.trend) and second - model.since >= ACCEPTED
    over = accepted or abs(off) < USUAL
    trend = ("spike" if off > 0 else "dip") if begins else "" if over else model.trend
    pace = 1 / min(model.seconds + 1, MEMORY)
    learned = model.expected if trend else model.expected + (count - model.expected) * pace
    after = replace(
        model,
        unjudged={at: number for at, number in model.unjudged.items() if at != second},
        recent=recent,
        judged=second + 1,
        expected=came / len(recent) if accepted else learned,
        seconds=model.seconds + 1,
        trend=trend,
        since=second if begins else model.since,
    )
    said = {"trend": trend, "asked": came, "expected": round(expected, 2)}
    return after, [Row(said, second * SECOND)] if begins else []


zeitgeist = (
    read("queries", idle_after="5 seconds")
    .deduplicate(within="10 minutes")
    .key("query")
    .remember(
        trends,
        state=Model,
        returns={"trend": "STRING", "asked": "BIGINT", "expected": "DOUBLE"},
    )
    .write("zeitgeist", mode="log")
)

demo = Demo(
    rate=100,
    last="4 minutes",
    step="4 seconds",
    note="Every fourth block of a thousand questions has a trend planted in it, from the seventh on.",
)
