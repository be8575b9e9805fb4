"""Invalid payments of ten kinds: each is quarantined with its address and reason."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

pytestmark = pytest.mark.whole
RECORDS, EVERY, PARTITIONS = 2_000, 100, 3
NOON = round(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)
FAR_FUTURE_MS = 9_999 * 366 * 86_400_000


def payment(number: int, **changes: Any) -> dict[str, Any]:
    """Build a payment; each card stays in one partition and sometimes changes its country."""
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


def encode_payment(number: int, **changes: Any) -> bytes:
    return json.dumps(payment(number, **changes)).encode()


def encode_without(field: str) -> bytes:
    return json.dumps({name: value for name, value in payment(0).items() if name != field}).encode()


INVALID_KINDS: list[tuple[bytes | None, str]] = [
    (encode_payment(0)[:-1], "malformed"),
    (encode_payment(0, at="noon"), "wrong_type:at"),
    (b"[1, 2]", "malformed"),
    (b"\xff\xfe\x00", "malformed"),
    (None, "no_value"),
    (encode_payment(0, card=None), "missing_field:card"),
    (encode_without("at"), "missing_field:at"),
    (encode_without("amount"), "missing_field:amount"),
    (encode_payment(0, at=FAR_FUTURE_MS), "event_time_out_of_range"),
    (encode_payment(0, amount=-3.0), "check:amount_values_to_be_between"),
]


def send_payments(stack: ScratchStack) -> dict[str, str]:
    """Send all payments; return address and reason of each invalid one."""
    producer = Producer({"bootstrap.servers": stack.bootstrap, "acks": "all", "enable.idempotence": True})
    invalid: dict[str, str] = {}
    for number in range(RECORDS):
        kind = INVALID_KINDS[number // EVERY % len(INVALID_KINDS)] if number % EVERY == EVERY - 1 else None

        def record_delivery(problem: Any, message: Any, kind: Any = kind) -> None:
            assert problem is None
            if kind is not None:
                invalid[f"{message.partition()}:{message.offset()}"] = kind[1]

        value = encode_payment(number) if kind is None else kind[0]
        producer.produce("cards", value, partition=number % PARTITIONS, on_delivery=record_delivery)
    assert producer.flush(PATIENCE_S) == 0
    return invalid


def test_each_invalid_record_is_quarantined_by_its_address(running: ScratchStack) -> None:
    invalid = send_payments(running)
    assert len(invalid) == RECORDS // EVERY
    running.run_checked("stream", "start", "card_alerts")
    poll_until(
        lambda: running.batch("card_alerts") >= 0 and count_read(running) >= RECORDS,
        PATIENCE_S,
        "every payment",
    )
    running.run_checked("stream", "drain", "card_alerts")
    quarantined = json.loads(running.run_checked("quarantine", "list", "cards", "--limit", "1000", "--json"))[
        "records"
    ]
    assert {
        f"{record['partition']}:{record['offset']}": record["reason"] for record in quarantined
    } == invalid
    report = json.loads(running.run("audit", "card_alerts", "--json", seconds=180).stdout)
    states = {verdict["check"]: (verdict["state"], verdict["summary"]) for verdict in report["verdicts"]}
    valid = RECORDS - len(invalid)
    fates = f"{valid:,} accepted + 0 late + {len(invalid)} quarantined + 0 duplicate + 0 filtered"
    assert states["accounts"] == ("passed", f"{RECORDS:,} read = {fates}")
    # Its function runs once per batch, so the audit executes the batches again.
    assert states["results"][0] == "passed", states["results"]
    assert "re-executed batches" in states["results"][1]
    assert states.pop("archive cards")[0] == "unproven"  # there is no archive
    assert states.pop("delivery cards")[0] == "unproven"  # the producer has no ledger
    assert {state for state, _ in states.values()} == {"passed"}, report["verdicts"]


def count_read(stack: ScratchStack) -> int:
    """Return the number of records in the ledger of the stream."""
    return sum(stack.table("ledger", "card_alerts").column("read").to_pylist())
