"""One payment in a hundred is broken, in ten ways: the platform accounts for each one by its address."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole
RECORDS, EVERY, PARTITIONS = 2_000, 100, 3
NOON = round(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)
YEARS = 9_999 * 366 * 86_400_000


def payment(number: int, **changes: Any) -> dict[str, Any]:
    """A payment; each card stays in one partition, and is used in another country now and then."""
    return {
        "id": f"p{number}",
        "card": f"c{number % PARTITIONS}-{number % 7}",
        "at": NOON + number * 1_000,
        "amount": 1.5,
        "merchant": "m",
        "category": "books",
        "country": "FR" if number % 50 == 7 else "DE",
        "online": False,
        **changes,
    }


def text(number: int, **changes: Any) -> bytes:
    return json.dumps(payment(number, **changes)).encode()


def without(field: str) -> bytes:
    return json.dumps({name: value for name, value in payment(0).items() if name != field}).encode()


KINDS: list[tuple[bytes | None, str]] = [
    (text(0)[:-1], "malformed"),
    (text(0, at="noon"), "malformed"),
    (b"[1, 2]", "malformed"),
    (b"\xff\xfe\x00", "malformed"),
    (None, "no_value"),
    (text(0, card=None), "missing_field:card"),
    (without("at"), "missing_field:at"),
    (without("amount"), "missing_field:amount"),
    (text(0, at=YEARS), "event_time_out_of_range"),
    (text(0, amount=-3.0), "check:amount_values_to_be_between"),
]


def sent(stack: ScratchStack) -> dict[str, str]:
    """Send all of them, and return address and reason of each broken one."""
    producer = Producer({"bootstrap.servers": stack.bootstrap, "acks": "all", "enable.idempotence": True})
    broken: dict[str, str] = {}
    for number in range(RECORDS):
        kind = KINDS[number // EVERY % len(KINDS)] if number % EVERY == EVERY - 1 else None

        def arrived(problem: Any, message: Any, kind: Any = kind) -> None:
            assert problem is None
            if kind is not None:
                broken[f"{message.partition()}:{message.offset()}"] = kind[1]

        value = text(number) if kind is None else kind[0]
        producer.produce("cards", value, partition=number % PARTITIONS, on_delivery=arrived)
    assert producer.flush(30) == 0
    return broken


def test_each_broken_record_is_accounted_for_by_its_address(running: ScratchStack) -> None:
    broken = sent(running)
    assert len(broken) == RECORDS // EVERY
    running.must("stream", "start", "card_alerts")
    until(lambda: running.batch("card_alerts") >= 0 and read(running) >= RECORDS, 90, "every payment")
    running.must("stream", "drain", "card_alerts")
    held = json.loads(running.must("quarantine", "list", "cards", "--limit", "1000", "--json"))["records"]
    assert {f"{one['partition']}:{one['offset']}": one["reason"] for one in held} == broken
    report = json.loads(running.run("audit", "card_alerts", "--json", seconds=180).stdout)
    states = {verdict["check"]: (verdict["state"], verdict["summary"]) for verdict in report["verdicts"]}
    good = RECORDS - len(broken)
    said = (
        f"{RECORDS:,} read = {good:,} folded + 0 late + {len(broken)} quarantined + 0 duplicate + 0 filtered"
    )
    assert states["accounts"] == ("passed", said)
    # Its function runs once per batch, so the batches are run again.
    assert states["results"][0] == "passed", states["results"]
    assert "re-executed batches" in states["results"][1]
    assert states.pop("archive cards")[0] == "unproven"  # nobody asked for an archive
    assert (
        states.pop("delivery cards")[0] == "unproven"
    )  # a client of its own sent them, of which no ledger tells
    assert {state for state, _ in states.values()} == {"passed"}, report["verdicts"]


def read(stack: ScratchStack) -> int:
    """How many records the ledger of the stream tells of."""
    return sum(stack.table("ledger", "card_alerts").column("read").to_pylist())
