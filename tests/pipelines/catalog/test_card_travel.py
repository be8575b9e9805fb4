"""Uses of a card are compared in the order in which they were made, however they arrive."""

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import msgspec
from tests.pipelines.catalog.send_time_batches import BEGAN, Fields, batches

from penstock.conformance.reference import Evaluator
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.cards import CardGenerator
from penstock.pipelines import catalog
from penstock.pipelines.catalog.card_travel import AIRCRAFT_KMH, CAPITALS, HOUR_MS, distance_km

BOUND = 10_000


def payments() -> list[Fields]:
    """Payments of few cards, a third of them in a country that is not the card's."""
    chance = random.Random(3)
    made = zip(
        range(3_000), CardGenerator(seed=2).generate_records(0, make_even_send_times(BEGAN, 2)), strict=False
    )
    found: list[Fields] = []
    for number, record in made:
        fields = msgspec.to_builtins(record)
        country = chance.choice(list(CAPITALS)) if number % 3 == 0 else "DE"
        found.append({**fields, "card": f"card-{number % 7}", "country": country})
    return found


def by_a_loop(made: list[Fields]) -> list[tuple[Any, ...]]:
    """Every two successive uses of a card, compared."""
    cards: defaultdict[str, list[Fields]] = defaultdict(list)
    for fields in sorted(made, key=lambda each: (each["at"], each["id"])):
        cards[fields["card"]].append(fields)
    return sorted(
        (card, after["id"], before["id"])
        for card, uses in cards.items()
        for before, after in pairwise(uses)
        if distance_km(CAPITALS[before["country"]], CAPITALS[after["country"]])
        > AIRCRAFT_KMH * (after["at"] - before["at"]) / HOUR_MS
    )


def test_any_arrival_within_the_bound_tells_the_same() -> None:
    made, chance = payments(), random.Random(11)
    sent = sorted(((each["at"] + chance.randrange(BOUND), each) for each in made), key=lambda pair: pair[0])
    evaluator = Evaluator(catalog.load_plan("card_travel"), lambda fields: [dict(fields)])
    told = sorted(
        (pane.key[0], values["payment"], values["previous_payment"])
        for batch in batches(sent, "cards", 3_000)
        for pane in evaluator.run(batch).panes
        for values in [dict(pane.values)]
    )
    expected = by_a_loop(made)
    assert told == expected
    assert len(expected) > 100


def test_what_comes_behind_the_watermark_is_compared_with_nothing() -> None:
    made = [each for each in payments() if each["card"] == "card-0"]
    late = {**made[3], "id": "late", "country": "US"}
    sent = [*((each["at"], each) for each in made), (made[-1]["at"], late)]
    evaluator = Evaluator(catalog.load_plan("card_travel"), lambda fields: [dict(fields)])
    panes = [pane for batch in batches(sent, "cards", 3_000) for pane in evaluator.run(batch).panes]
    assert sorted(
        (p.key[0], dict(p.values)["payment"], dict(p.values)["previous_payment"]) for p in panes
    ) == by_a_loop(made)


def test_a_distance_is_that_of_the_atlas() -> None:
    assert abs(distance_km(CAPITALS["DE"], CAPITALS["FR"]) - 878) < 5
    assert abs(distance_km(CAPITALS["GB"], CAPITALS["US"]) - 5_900) < 30
    assert distance_km(CAPITALS["PL"], CAPITALS["PL"]) == 0
