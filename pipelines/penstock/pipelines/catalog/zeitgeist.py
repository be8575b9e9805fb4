"""Trends in search queries: spikes and dips are detected within seconds.

Questions are deduplicated and counted by second. When the watermark passes a second, the last five seconds are
compared with the rate that a model of the query expects. A late question still updates the model while its second
is among these five; rows that were already emitted do not change.
"""

from dataclasses import dataclass, field, replace
from math import sqrt

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

SECOND_MS = 1_000
JUDGED_SECONDS = 5
"""The number of seconds that are compared with the model."""
MIN_LEARNED_SECONDS = 20
"""The number of seconds after which a model may detect trends."""
MEMORY_SECONDS = 30
"""The time after which the weight of a second has dropped to about a third."""
TREND_START_SIGMA, TREND_END_SIGMA = 7.0, 3.0
"""Deviations from the expected count at which a trend starts and ends, in standard deviations.

The deviation is twice the difference of the square roots, which has a spread of about 1 for counts of any size.
"""
ACCEPTED_AFTER_SECONDS = 60
"""The time after which a trend becomes the expected rate."""
END_OF_TIME_MS = 253_402_300_800_000
"""The end of the year 9999. The watermark of an input that has ended is beyond it."""
MIN_EXPECTED_RATE = 0.05
"""Questions per second below which the state of a query is deleted."""


@dataclass(frozen=True)
class QueryModel:
    """The expected rate of a query and its recent counts."""

    counts_by_second: dict[int, int] = field(default_factory=dict)
    """Questions by second, for seconds that the watermark has not passed."""
    recent_counts: tuple[int, ...] = ()
    """The counts of the last compared seconds, the newest at the end."""
    next_second: int = 0
    """The second after the last compared one."""
    expected_rate: float = 0.0
    seconds_learned: int = 0
    trend: str = ""
    trend_start: int = 0


def detect_trends(context: KeyContext[QueryModel]) -> KeyUpdate[QueryModel]:
    """Return a row for each trend that starts."""
    model = add_questions(
        context.state or QueryModel(), [record.time // SECOND_MS for record in context.records]
    )
    rows: list[OutputRow] = []
    while (second := next_complete_second(model, context.watermark)) is not None:
        count = model.counts_by_second.get(second, 0)
        model, trend_rows = judge_second(model, second, count)
        rows += trend_rows
        if (
            model.seconds_learned > MIN_LEARNED_SECONDS
            and model.expected_rate < MIN_EXPECTED_RATE
            and not model.counts_by_second
        ):
            return KeyUpdate(None, rows, [])
    return KeyUpdate(
        model, rows, [Timer((max(model.next_second, min(model.counts_by_second, default=0)) + 1) * SECOND_MS)]
    )


def add_questions(model: QueryModel, seconds: list[int]) -> QueryModel:
    """Add questions to the model. Late questions count if their second is among the recent ones."""
    counts_by_second, recent_counts, expected_rate = (
        dict(model.counts_by_second),
        list(model.recent_counts),
        model.expected_rate,
    )
    for second in seconds:
        seconds_ago = model.next_second - second
        if not model.seconds_learned or seconds_ago <= 0:
            counts_by_second[second] = counts_by_second.get(second, 0) + 1
        elif seconds_ago <= len(recent_counts):
            recent_counts[-seconds_ago] += 1
            expected_rate += 0 if model.trend else question_weight(model.seconds_learned, seconds_ago)
    return replace(
        model,
        counts_by_second=counts_by_second,
        recent_counts=tuple(recent_counts),
        expected_rate=expected_rate,
    )


def question_weight(seconds: int, seconds_ago: int) -> float:
    """Return what one more question adds to the expected rate, given its age in seconds."""
    fading_steps = max(0, min(seconds_ago - 1, seconds - MEMORY_SECONDS))
    return (1 - 1 / MEMORY_SECONDS) ** fading_steps / min(seconds, MEMORY_SECONDS)


def next_complete_second(model: QueryModel, watermark: int) -> int | None:
    """Return the next second to compare, once the watermark has passed it.

    The end of the input is not a dip: no second after the last question of a query is compared then.
    """
    first_second = min(model.counts_by_second, default=None)
    second = model.next_second if model.seconds_learned else first_second
    if second is None or (second + 1) * SECOND_MS > watermark:
        return None
    return second if first_second is not None or watermark < END_OF_TIME_MS else None


def judge_second(model: QueryModel, second: int, count: int) -> tuple[QueryModel, list[OutputRow]]:
    """Return the model after a complete second, and a row if a trend starts with it."""
    recent_counts = (*model.recent_counts, count)[-JUDGED_SECONDS:]
    question_count, expected_count = sum(recent_counts), model.expected_rate * len(recent_counts)
    deviation = 2 * (sqrt(question_count) - sqrt(expected_count))
    starts_trend = (
        model.seconds_learned >= MIN_LEARNED_SECONDS
        and not model.trend
        and abs(deviation) > TREND_START_SIGMA
    )
    is_accepted = bool(model.trend) and second - model.trend_start >= ACCEPTED_AFTER_SECONDS
    is_over = is_accepted or abs(deviation) < TREND_END_SIGMA
    trend = ("spike" if deviation > 0 else "dip") if starts_trend else "" if is_over else model.trend
    learning_rate = 1 / min(model.seconds_learned + 1, MEMORY_SECONDS)
    learned_rate = (
        model.expected_rate if trend else model.expected_rate + (count - model.expected_rate) * learning_rate
    )
    next_model = replace(
        model,
        counts_by_second={
            other_second: number
            for other_second, number in model.counts_by_second.items()
            if other_second != second
        },
        recent_counts=recent_counts,
        next_second=second + 1,
        expected_rate=question_count / len(recent_counts) if is_accepted else learned_rate,
        seconds_learned=model.seconds_learned + 1,
        trend=trend,
        trend_start=second if starts_trend else model.trend_start,
    )
    trend_fields = {"trend": trend, "asked": question_count, "expected": round(expected_count, 2)}
    return next_model, [OutputRow(trend_fields, second * SECOND_MS)] if starts_trend else []


zeitgeist = (
    read("queries", idle_after="5 seconds")
    .deduplicate(within="10 minutes")
    .key("query")
    .stateful(
        detect_trends,
        state=QueryModel,
        returns={"trend": "STRING", "asked": "BIGINT", "expected": "DOUBLE"},
    )
    .write("zeitgeist", mode="log")
)

demo = Demo(
    rate=100,
    last="4 minutes",
    step="4 seconds",
    note="The generator plants a trend in every fourth block of 1,000 questions, from the seventh on.",
)
