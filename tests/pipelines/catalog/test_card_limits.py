"""`card_limits` joins each payment with the limit at its event time, in any order of arrival."""

import random
from bisect import bisect_right
from collections import defaultdict
from itertools import islice
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import START_MS

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.pipelines import catalog

MAX_DELAY_MS, STEP_MS = 10_000, 3_000


def generate_records(topic: str, count: int, per_second: float) -> list[dict[str, Any]]:
    records = islice(
        GENERATORS[topic](5).generate_records(0, make_even_send_times(START_MS, per_second)), count
    )
    return [{**msgspec.to_builtins(each), "card": f"card-{n % 40}"} for n, each in enumerate(records)]


def split_into_batches(topics: dict[str, list[dict[str, Any]]]) -> list[InputBatch]:
    """Return batches of both topics. No record is later than the maximum delay."""
    random_numbers = random.Random(3)
    sent = sorted(
        (
            (each["at"] + random_numbers.randrange(MAX_DELAY_MS), topic, each)
            for topic, topic_records in topics.items()
            for each in topic_records
        ),
        key=lambda sent_record: sent_record[0],
    )
    offsets: defaultdict[str, int] = defaultdict(int)
    steps: defaultdict[int, list[InputRecord]] = defaultdict(list)
    for at, topic, fields in sent:
        steps[at // STEP_MS].append(InputRecord(topic, 0, offsets[topic], fields))
        offsets[topic] += 1
    partitions = frozenset((topic, 0) for topic in topics)
    rows = [
        InputBatch(n, (step + 1) * STEP_MS, tuple(topic_records), partitions)
        for n, (step, topic_records) in enumerate(sorted(steps.items()))
    ]
    return [*rows, InputBatch(len(rows), rows[-1].clock + STEP_MS, (), partitions, is_last=True)]


def test_each_payment_has_the_newest_limit_before_it() -> None:
    cards, limits = generate_records("cards", 800, 10), generate_records("card-limits", 300, 4)
    evaluator = Evaluator(catalog.load_plan("card_limits"))
    rows = [
        tuple(dict(pane.values)[name] for name in ("payment", "most"))
        for batch in split_into_batches({"cards": cards, "card-limits": limits})
        for pane in evaluator.run(batch).panes
    ]
    limits_of_card: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for limit in sorted(limits, key=lambda each: each["at"]):
        limits_of_card[limit["card"]].append((limit["at"], limit["most"]))
    expected = []
    for card in cards:
        index = bisect_right([at for at, _ in limits_of_card[card["card"]]], card["at"])
        expected.append((card["id"], limits_of_card[card["card"]][index - 1][1] if index else None))
    assert sorted(rows) == sorted(expected)
    assert 0 < sum(most is None for _, most in expected) < len(expected)
