"""A payment is told with the limit that held when it was made, however the two topics come."""

import random
from bisect import bisect_right
from collections import defaultdict
from itertools import islice
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import BEGAN

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.pipelines import catalog

BOUND, STEP = 10_000, 3_000


def made(topic: str, count: int, per_second: float) -> list[dict[str, Any]]:
    records = islice(GENERATORS[topic](5).generate_records(0, make_even_send_times(BEGAN, per_second)), count)
    return [{**msgspec.to_builtins(each), "card": f"card-{n % 40}"} for n, each in enumerate(records)]


def batches(topics: dict[str, list[dict[str, Any]]]) -> list[InputBatch]:
    """Records of both topics in the order in which they are sent, each within the bound."""
    chance = random.Random(3)
    sent = sorted(
        (
            (each["at"] + chance.randrange(BOUND), topic, each)
            for topic, some in topics.items()
            for each in some
        ),
        key=lambda one: one[0],
    )
    offsets: defaultdict[str, int] = defaultdict(int)
    steps: defaultdict[int, list[InputRecord]] = defaultdict(list)
    for at, topic, fields in sent:
        steps[at // STEP].append(InputRecord(topic, 0, offsets[topic], fields))
        offsets[topic] += 1
    places = frozenset((topic, 0) for topic in topics)
    found = [
        InputBatch(n, (step + 1) * STEP, tuple(some), places)
        for n, (step, some) in enumerate(sorted(steps.items()))
    ]
    return [*found, InputBatch(len(found), found[-1].clock + STEP, (), places, is_last=True)]


def test_each_payment_stands_beside_the_newest_limit_before_it() -> None:
    cards, limits = made("cards", 800, 10), made("card-limits", 300, 4)
    evaluator = Evaluator(catalog.load_plan("card_limits"))
    found = [
        tuple(dict(pane.values)[name] for name in ("payment", "most"))
        for batch in batches({"cards": cards, "card-limits": limits})
        for pane in evaluator.run(batch).panes
    ]
    known: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for limit in sorted(limits, key=lambda each: each["at"]):
        known[limit["card"]].append((limit["at"], limit["most"]))
    expected = []
    for card in cards:
        before = bisect_right([at for at, _ in known[card["card"]]], card["at"])
        expected.append((card["id"], known[card["card"]][before - 1][1] if before else None))
    assert sorted(found) == sorted(expected)
    assert 0 < sum(most is None for _, most in expected) < len(expected)
