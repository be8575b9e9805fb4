"""`card_travel` compares payments of a card in event-time order, in any order of arrival."""

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import START_MS, Fields, split_by_send_time

from penstock.conformance.reference import Evaluator
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.cards import CardGenerator
from penstock.pipelines import catalog
from penstock.pipelines.catalog.card_travel import AIRCRAFT_KMH, CAPITALS, HOUR_MS, distance_km

MAX_DELAY_MS = 10_000


def generate_payments() -> list[Fields]:
    """Generate payments of a few cards. A third of them have a random country."""
    random_numbers = random.Random(3)
    generated = zip(
        range(3_000),
        CardGenerator(seed=2).generate_records(0, make_even_send_times(START_MS, 2)),
        strict=False,
    )
    payments: list[Fields] = []
    for number, record in generated:
        fields = msgspec.to_builtins(record)
        country = random_numbers.choice(list(CAPITALS)) if number % 3 == 0 else "DE"
        payments.append({**fields, "card": f"card-{number % 7}", "country": country})
    return payments


def find_impossible_travel(payments: list[Fields]) -> list[tuple[Any, ...]]:
    """Compare successive payments of each card in a loop."""
    cards: defaultdict[str, list[Fields]] = defaultdict(list)
    for fields in sorted(payments, key=lambda each: (each["at"], each["id"])):
        cards[fields["card"]].append(fields)
    return sorted(
        (card, after["id"], before["id"])
        for card, uses in cards.items()
        for before, after in pairwise(uses)
        if distance_km(CAPITALS[before["country"]], CAPITALS[after["country"]])
        > AIRCRAFT_KMH * (after["at"] - before["at"]) / HOUR_MS
    )


def test_any_order_of_arrival_within_the_bound_gives_the_same_rows() -> None:
    payments, random_numbers = generate_payments(), random.Random(11)
    sent = sorted(
        ((each["at"] + random_numbers.randrange(MAX_DELAY_MS), each) for each in payments),
        key=lambda pair: pair[0],
    )
    evaluator = Evaluator(catalog.load_plan("card_travel"), lambda fields: [dict(fields)])
    rows = sorted(
        (pane.key[0], values["payment"], values["previous_payment"])
        for batch in split_by_send_time(sent, "cards", 3_000)
        for pane in evaluator.run(batch).panes
        for values in [dict(pane.values)]
    )
    expected = find_impossible_travel(payments)
    assert rows == expected
    assert len(expected) > 100


def test_a_late_payment_is_not_compared() -> None:
    payments = [each for each in generate_payments() if each["card"] == "card-0"]
    late = {**payments[3], "id": "late", "country": "US"}
    sent = [*((each["at"], each) for each in payments), (payments[-1]["at"], late)]
    evaluator = Evaluator(catalog.load_plan("card_travel"), lambda fields: [dict(fields)])
    panes = [
        pane for batch in split_by_send_time(sent, "cards", 3_000) for pane in evaluator.run(batch).panes
    ]
    assert sorted(
        (p.key[0], dict(p.values)["payment"], dict(p.values)["previous_payment"]) for p in panes
    ) == find_impossible_travel(payments)


def test_distances_between_capitals() -> None:
    assert abs(distance_km(CAPITALS["DE"], CAPITALS["FR"]) - 878) < 5
    assert abs(distance_km(CAPITALS["GB"], CAPITALS["US"]) - 5_900) < 30
    assert distance_km(CAPITALS["PL"], CAPITALS["PL"]) == 0
