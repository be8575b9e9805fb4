"""Commands that read delivery ledgers."""

import json
from itertools import count
from pathlib import Path

import pytest

from penstock.ingestion.ledger import DeliveryLedger


@pytest.fixture
def ledger(home: Path) -> DeliveryLedger:
    """A ledger with ten acknowledged, five abandoned and four pending records."""
    tick = count(1_000)
    delivery_ledger = DeliveryLedger(home / "producers" / "lines-socket", lambda: next(tick))
    delivery_ledger.start_session(
        [("lines", 0), ("lines.dead-letters", 0)], [-1, -1], "socket 127.0.0.1:9999", "key"
    )
    delivery_ledger.record_intent(0, 10, None)
    delivery_ledger.record_acknowledgements([(0, [0] * 9 + [1], {0: [(40, 9)], 1: [(7, 1)]})])
    delivery_ledger.record_abandonment(10, 5)
    delivery_ledger.record_intent(15, 4, None)
    delivery_ledger.close(clean=False)
    return delivery_ledger


def test_an_empty_list_of_producers_names_the_command_to_start_one(run) -> None:
    assert "penstock ingest" in run("producer", "list").out
    refused = run("producer", "where", "sensors-1", "0")
    assert refused.code == 2
    assert "there is no producer 'sensors-1', and no other producer either" in refused.err


def test_producers_are_listed_with_their_progress(run, ledger: DeliveryLedger) -> None:
    (producer,) = json.loads(run("producer", "list", "--json").out)
    assert producer == {
        "producer": "lines-socket",
        "topic": "lines",
        "source": "socket 127.0.0.1:9999",
        "acknowledged_until": 15,
        "unresolved": 4,
    }
    assert run("producer", "list").out.splitlines()[1].split() == [
        *("lines-socket", "lines", "socket", "127.0.0.1:9999", "15", "4")
    ]


def test_a_dead_letter_has_an_address(run, ledger: DeliveryLedger) -> None:
    result = run("producer", "where", "lines-socket", "8", "--count", "2", "--json")
    assert result.code == 0
    assert json.loads(result.out) == [
        {"sequence": 8, "topic": "lines", "partition": 0, "offset": 48},
        {"sequence": 9, "topic": "lines.dead-letters", "partition": 0, "offset": 7},
    ]


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [(12, "abandoned by a source that cannot replay"), (17, "sent but not acknowledged"), (19, "not sent")],
)
def test_a_missing_address_has_a_reason(run, ledger: DeliveryLedger, sequence: int, reason: str) -> None:
    result = run("producer", "where", "lines-socket", str(sequence))
    assert result.code == 1
    assert f"1 records without an address, the first is {sequence}: {reason}" in result.err
