"""The quarantine as a person meets it: looked at, repaired, sent again once, given up, and all accounted for."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA, QUARANTINE_SCHEMA
from penstock.engine.plan.codec import contract_version
from penstock.infra.local_broker import LocalBroker
from penstock.platform.services.stream_catalog import load_plan

GOOD = {"id": "1", "device": "a", "site": "s", "at": 1, "temperature": 2.5}
HELD = [
    (1, b"broken", "malformed"),
    (2, json.dumps({**GOOD, "id": "2"}).encode(), "missing_field:humidity"),
    (3, None, "no_value"),
    (4, b"\xff\xfe", "malformed"),
    (9, json.dumps({**GOOD, "id": "9"}).encode(), "future_event_time"),
]


@pytest.fixture
def held(home: Path) -> None:
    """What a stream refused, and how far it has read: up to offset 6 of partition 0."""
    version = contract_version(load_plan("sensor_minute").sources[0])
    clock = pa.field("batch_clock", pa.timestamp("us", tz="UTC"))
    rows = [
        {
            "topic": "sensors",
            "partition": 0,
            "offset": offset,
            "value": value,
            "reason": reason,
            "stream": "sensor_minute" if offset < 9 else "another",
            "contract": version,
            "batch_id": 0,
            "arrived": 0,
            "batch_clock": 0,
        }
        for offset, value, reason in HELD
    ]
    schema = pa.schema([*QUARANTINE_SCHEMA, pa.field("batch_id", pa.int64()), clock])
    write_deltalake(home / "warehouse/quarantine/sensors", pa.Table.from_pylist(rows, schema))
    read = dict.fromkeys(LEDGER_SCHEMA.names, 0) | {"topic": "sensors", "end": 6, "read": 6, "batch_id": 0}
    schema = pa.schema([*LEDGER_SCHEMA, pa.field("batch_id", pa.int64())])
    write_deltalake(home / "warehouse/ledger/sensor_minute", pa.Table.from_pylist([read], schema))


def test_records_are_listed_with_why_by_whom_and_how_they_stand(run: Callable, held: None) -> None:
    lines = run("quarantine", "list", "sensors").out.splitlines()
    assert lines[1].split()[:5] == ["0:1", "1970-01-01", "00:00:00", "malformed", "sensor_minute"]
    assert lines[-1] == "5 quarantined = 5 pending + 0 replaying + 0 replayed + 0 discarded"
    assert len(run("quarantine", "list", "sensors", "--reason", "mal").out.splitlines()) == 4
    few = run("quarantine", "list", "sensors", "--limit", "2").out.splitlines()
    assert few[-2] == "2 of 5 records shown; use --limit for more, --json for all"
    assert [len(few), few[-1]] == [5, lines[-1]]
    told = json.loads(run("quarantine", "list", "sensors", "--json").out)["records"]
    assert [(one["value"], one.get("value_base64")) for one in told[:1] + told[3:4]] == [
        ("broken", None),
        (None, "//4="),
    ]
    shown = json.loads(run("quarantine", "show", "sensors", "0:2", "--json").out)
    lines = run("quarantine", "show", "sensors", "0:2").out.splitlines()
    assert [line.split() for line in lines[:2]] == [["record", "sensors", "0:2"], ["topic", "sensors"]]
    assert ["streams", "sensor_minute"] in [line.split() for line in lines]
    assert (shown["reason"], shown["state"], shown["streams"]) == (
        "missing_field:humidity",
        "pending",
        ["sensor_minute"],
    )


def test_a_record_is_given_up_once(run: Callable, held: None) -> None:
    assert (
        run("quarantine", "discard", "sensors", "0:1", "--why", "a test").out == "1 of 1 records discarded\n"
    )
    again = run("quarantine", "discard", "sensors", "0:1", "0:4")
    assert again.out == "1 of 1 records discarded\n"
    assert "sensors 0:1 skipped: it is already discarded" in again.err
    assert "0:4" not in again.err
    assert run("quarantine", "discard", "sensors", "0:1").out == "0 of 0 records discarded\n"
    shown = json.loads(run("quarantine", "show", "sensors", "0:1", "--json").out)
    assert (shown["state"], shown["why"]) == ("discarded", "a test")


def test_a_record_that_is_meant_in_two_ways_is_counted_once(run: Callable, held: None) -> None:
    answer = run("quarantine", "discard", "sensors", "0:1", "--reason", "mal")
    assert answer.out == "2 of 2 records discarded\n"
    again = run("quarantine", "discard", "sensors", "0:1", "0:1", "--all")
    assert again.err.count("sensors 0:1 skipped") == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("list", "nothing"), 2, "there is no topic 'nothing'"),
        (("show", "sensors", "7:7"), 1, "sensors 7:7 is not in quarantine"),
        (("discard", "sensors", "first"), 1, "write PARTITION:OFFSET"),
        (
            ("discard", "sensors"),
            2,
            "select records by position (for example 1:4711), with --reason, or with --all",
        ),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    run: Callable, held: None, words: tuple[str, ...], code: int, said: str
) -> None:
    answer = run("quarantine", *words)
    assert answer.code == code
    assert said in answer.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"partition": 0, "offset": 3, "value": None}, "the value is null"),
        (
            {"partition": 0, "offset": 5, "value": "mended", "value_base64": "//4="},
            "both value and value_base64 are set",
        ),
        ({"partition": 1.7, "offset": 3, "value": "mended"}, "1.7 is not an integer"),
        ({"partition": 0, "offset": "3", "value": "mended"}, "'3' is not an integer"),
    ],
)
def test_a_repaired_record_that_does_not_say_what_is_sent_is_refused_with_its_line(
    run: Callable, held: None, tmp_path: Path, line: dict[str, object], said: str
) -> None:
    mended = tmp_path / "mended.jsonl"
    mended.write_text(json.dumps(line), "utf-8")
    answer = run("quarantine", "replay", "sensors", "--repaired", str(mended))
    assert answer.code == 2
    assert "line 1 of --repaired" in answer.err
    assert said in answer.err


def arrived(broker: LocalBroker) -> list[tuple[int, bytes | None, bytes | None]]:
    """Everything that the topic holds now."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t", "enable.partition.eof": True,
                       "auto.offset.reset": "earliest"})  # fmt: skip
    left = {0, 1, 2}
    reader.assign([TopicPartition("sensors", number, 0) for number in left])
    found = []
    while left:
        for message in reader.consume(500, 0.1):
            if message.error():
                left.discard(message.partition())
            else:
                found.append((message.partition(), message.key(), message.value()))
    reader.close()
    return found


@pytest.mark.kafka
def test_records_are_sent_again_once_and_what_may_not_be_is_refused(
    run: Callable, held: None, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    run("topics", "apply")
    before = len(arrived(broker))
    mended = tmp_path / "mended.jsonl"
    lines = [
        {"partition": 0, "offset": 1, "value": {**GOOD, "id": "mended"}},
        {"partition": 0, "offset": 3, "value": "{"},
    ]
    mended.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    answer = run("quarantine", "replay", "sensors", "--all", "--repaired", str(mended), "--json")
    told = json.loads(answer.out)
    assert answer.code == 1
    assert (told["decided"], told["sent"]) == (2, 2)
    assert {one["position"]: one["reason"].split(":")[0].split(";")[0] for one in told["refused"]} == {
        "0:3": "it still violates the contract",
        "0:4": "it still violates the contract",
        "0:9": "sensor_minute has read only up to offset 6",
    }
    fresh = arrived(broker)[before:] if before == 0 else [one for one in arrived(broker) if one[1] == b"a"]
    assert {value for _, _, value in fresh} >= {
        json.dumps({**GOOD, "id": "mended"}, separators=(",", ":")).encode(),
        HELD[1][1],
    }
    assert len(arrived(broker)) == before + 2
    again = json.loads(run("quarantine", "replay", "sensors", "--json").out)
    assert (again["decided"], again["sent"], len(arrived(broker))) == (0, 0, before + 2)
    states = json.loads(run("quarantine", "list", "sensors", "--json").out)
    assert states["counts"] == {"pending": 3, "replaying": 0, "replayed": 2, "discarded": 0}
    assert states["records"][0]["state"].startswith("replayed to ")
