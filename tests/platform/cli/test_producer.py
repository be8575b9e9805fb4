"""Ledgers as a person asks them; written here as a producer writes them."""

import json
from itertools import count
from pathlib import Path

import pytest

from penstock.ingestion.ledger import DeliveryLedger


@pytest.fixture
def ledger(home: Path) -> DeliveryLedger:
    """Ten records acknowledged, five abandoned, four in doubt."""
    tick = count(1_000)
    made = DeliveryLedger(home / "producers" / "lines-socket", lambda: next(tick))
    made.start_session([("lines", 0), ("lines.dead-letters", 0)], [-1, -1], "socket 127.0.0.1:9999", "key")
    made.record_intent(0, 10, None)
    made.record_acknowledgements([(0, [0] * 9 + [1], {0: [(40, 9)], 1: [(7, 1)]})])
    made.record_abandonment(10, 5)
    made.record_intent(15, 4, None)
    made.close(clean=False)
    return made


def test_no_producer_yet_says_how_there_is_one(run) -> None:
    assert "penstock ingest" in run("producer", "list").out
    refused = run("producer", "where", "sensors-1", "0")
    assert refused.code == 2
    assert "there is no producer 'sensors-1', and no other producer either" in refused.err


def test_producers_are_listed_with_how_far_they_are(run, ledger: DeliveryLedger) -> None:
    (one,) = json.loads(run("producer", "list", "--json").out)
    assert one == {
        "producer": "lines-socket",
        "topic": "lines",
        "source": "socket 127.0.0.1:9999",
        "acknowledged_until": 15,
        "unresolved": 4,
    }
    assert run("producer", "list").out.splitlines()[1].split() == [
        *("lines-socket", "lines", "socket", "127.0.0.1:9999", "15", "4")
    ]


def test_a_dead_letter_has_its_address_too(run, ledger: DeliveryLedger) -> None:
    answer = run("producer", "where", "lines-socket", "8", "--count", "2", "--json")
    assert answer.code == 0
    assert json.loads(answer.out) == [
        {"sequence": 8, "topic": "lines", "partition": 0, "offset": 48},
        {"sequence": 9, "topic": "lines.dead-letters", "partition": 0, "offset": 7},
    ]


@pytest.mark.parametrize(
    ("sequence", "why"),
    [(12, "abandoned by a source that cannot replay"), (17, "sent but not acknowledged"), (19, "not sent")],
)
def test_what_has_no_address_says_why(run, ledger: DeliveryLedger, sequence: int, why: str) -> None:
    answer = run("producer", "where", "lines-socket", str(sequence))
    assert answer.code == 1
    assert f"1 records without an address, the first is {sequence}: {why}" in answer.err
