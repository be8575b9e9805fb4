"""A record dated a year ahead, on the platform: quarantined by default, and healed where there was no limit."""

import json
import time
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

pytestmark = pytest.mark.whole
TOPIC, YEAR_MS, WINDOW_MS = "clocks", 365 * 86_400_000, 10_000
PIPELINE = """
from penstock.ingestion.contracts import Contract, ContractField
from penstock.stream import count, fixed, read

FIELDS = (ContractField("device", "string", "The device."), ContractField("at", "timestamp", "The time."))
CONTRACT = Contract("clocks", "Records of a device.", FIELDS, key="device", event_time="at")

{name} = (
    read(CONTRACT{options})
    .key("device")
    .aggregate(n=count())
    .window(fixed("10 seconds"))
    .write("{name}", mode="latest")
)
"""


def write_pipeline(stack: ScratchStack, name: str, options: str) -> None:
    (stack.catalog / f"{name}.py").write_text(PIPELINE.format(name=name, options=options), "utf-8")


def send(stack: ScratchStack, times: list[int]) -> None:
    producer = Producer({"bootstrap.servers": stack.bootstrap, "acks": "all", "enable.idempotence": True})
    for at in times:
        producer.produce(TOPIC, json.dumps({"device": "a", "at": at}).encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def count_fates(stack: ScratchStack, stream: str) -> dict[str, int]:
    rows = stack.table("ledger", stream).to_pylist()
    return {name: sum(row[name] for row in rows) for name in ("read", "accepted", "late", "quarantined")}


def list_windows(stack: ScratchStack, stream: str) -> dict[int, int]:
    rows = stack.table("latest", stream).to_pylist()
    return {round(row["window_start"].timestamp() * 1000): row["n"] for row in rows}


def stream_status(stack: ScratchStack, stream: str) -> dict[str, Any]:
    return next(one for one in stack.status()["streams"] if one["stream"] == stream)


def test_a_record_a_year_ahead_makes_no_other_record_late(running: ScratchStack) -> None:
    """The trial: 20 good records, one dated a year ahead, 60 good ones; 59 of these were late."""
    stack, streams = running, ("limited", "unlimited")
    admin = AdminClient({"bootstrap.servers": stack.bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        created.result(PATIENCE_S)
    write_pipeline(stack, "limited", "")
    write_pipeline(stack, "unlimited", ', max_future_skew="unlimited"')
    stack.run_checked("stream", "start", *streams)
    start_ms = round(time.time() * 1000) - 60_000
    good = [start_ms + number * 500 for number in range(80)]
    parts = (good[:20], [start_ms + YEAR_MS], good[20:])
    sent = 0
    for part in parts:
        send(stack, part)
        sent += len(part)
        for stream in streams:
            wait_until_read(stack, stream, sent)
    expected = Counter(at - at % WINDOW_MS for at in good)

    assert count_fates(stack, "limited") == {"read": 81, "accepted": 80, "late": 0, "quarantined": 1}
    assert list_windows(stack, "limited").items() <= expected.items()
    (row,) = (row for row in stack.table("quarantine", TOPIC).to_pylist() if row["stream"] == "limited")
    assert row["offset"] == 20
    assert row["reason"].startswith("future_event_time:at (364d23h")
    assert row["reason"].endswith(" ahead of the clock, max_future_skew 10m)")
    assert stream_status(stack, "limited")["healthy"] is True

    assert count_fates(stack, "unlimited") == {"read": 81, "accepted": 21, "late": 60, "quarantined": 0}
    poisoned = stream_status(stack, "unlimited")
    assert poisoned["healthy"] is False
    assert poisoned["note"].startswith("the watermark is 365 d in the future, so new records are late")
    assert stack.run("status").returncode == 1

    stack.run_checked("stream", "replay", "unlimited", "--without", f"{TOPIC}/0@20", seconds=180)
    check_healed(stack, expected, "left_out: by a replay")
    write_pipeline(stack, "unlimited", "")
    plan = stack.run("stream", "plan-upgrade", "unlimited").stdout
    assert "clocks.max_future_skew" in plan
    assert "unlimited" in plan
    stack.run_checked("stream", "upgrade", "unlimited", "--yes", seconds=PATIENCE_S)
    send(stack, [start_ms + YEAR_MS, start_ms + 40_000])
    wait_until_read(stack, "unlimited", 83)
    fates = {"read": 83, "accepted": 81, "late": 0, "quarantined": 2}
    assert count_fates(stack, "unlimited") == fates
    poll_until(lambda: stream_status(stack, "unlimited")["healthy"], PATIENCE_S, "the healed stream")
    stack.run_checked("stream", "drain", *streams)


def check_healed(stack: ScratchStack, expected: Counter[int], reason: str) -> None:
    assert count_fates(stack, "unlimited") == {"read": 81, "accepted": 80, "late": 0, "quarantined": 1}
    windows = list_windows(stack, "unlimited")
    assert {start: windows[start] for start in windows} == {start: expected[start] for start in windows}
    assert len(windows) >= len(expected) - 2  # the watermark has not passed the last ones
    assert stack.table("late", "unlimited").num_rows == 0
    (row,) = (row for row in stack.table("quarantine", TOPIC).to_pylist() if row["stream"] == "unlimited")
    assert (row["offset"], row["reason"]) == (20, reason)


def wait_until_read(stack: ScratchStack, stream: str, records: int) -> None:
    def has_read() -> bool:
        return stack.batch(stream) >= 0 and count_fates(stack, stream)["read"] >= records

    poll_until(has_read, PATIENCE_S, f"{records} records of {stream}")
