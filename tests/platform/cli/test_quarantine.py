"""Commands that list, repair, replay and discard quarantined records."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA, QUARANTINE_SCHEMA
from penstock.engine.plan.codec import contract_version
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.ingestion.consumers.topic_contents import read_topic
from penstock.ingestion.contracts import load_contract
from penstock.platform.services.stream_catalog import load_plan

VALID = {"id": "1", "device": "a", "site": "s", "at": 1, "temperature": 2.5}
QUARANTINED = [
    (1, b"broken", "malformed"),
    (2, json.dumps({**VALID, "id": "2"}).encode(), "missing_field:humidity"),
    (3, None, "no_value"),
    (4, b"\xff\xfe", "malformed"),
    (9, json.dumps({**VALID, "id": "9"}).encode(), "future_event_time"),
]


@pytest.fixture
def quarantine(home: Path) -> None:
    """Quarantined records of a stream that has read up to offset 6 of partition 0."""
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
        for offset, value, reason in QUARANTINED
    ]
    schema = pa.schema([*QUARANTINE_SCHEMA, pa.field("batch_id", pa.int64()), clock])
    write_deltalake(home / "warehouse/quarantine/sensors", pa.Table.from_pylist(rows, schema))
    read = dict.fromkeys(LEDGER_SCHEMA.names, 0) | {"topic": "sensors", "end": 6, "read": 6, "batch_id": 0}
    schema = pa.schema([*LEDGER_SCHEMA, pa.field("batch_id", pa.int64())])
    write_deltalake(home / "warehouse/ledger/sensor_minute", pa.Table.from_pylist([read], schema))


def test_records_are_listed_with_reason_stream_and_state(run: Callable, quarantine: None) -> None:
    lines = run("quarantine", "list", "sensors").out.splitlines()
    assert [cell.strip() for cell in re.split("  +", lines[1])][:5] == [
        *("0:1", "1970-01-01 00:00:00", "malformed", "invalid character (byte 0)", "sensor_minute"),
    ]
    assert lines[-1] == "5 quarantined = 5 pending + 0 replaying + 0 replayed + 0 discarded"
    assert len(run("quarantine", "list", "sensors", "--reason", "mal").out.splitlines()) == 4
    limited = run("quarantine", "list", "sensors", "--limit", "2").out.splitlines()
    assert limited[-2] == "2 of 5 records shown; use --limit for more, --json for all"
    assert [len(limited), limited[-1]] == [5, lines[-1]]
    records = json.loads(run("quarantine", "list", "sensors", "--json").out)["records"]
    assert [(record["value"], record.get("value_base64")) for record in records[:1] + records[3:4]] == [
        ("broken", None),
        (None, "//4="),
    ]
    shown = json.loads(run("quarantine", "show", "sensors", "0:2", "--json").out)
    lines = run("quarantine", "show", "sensors", "0:2").out.splitlines()
    assert [line.split() for line in lines[:2]] == [["record", "sensors", "0:2"], ["topic", "sensors"]]
    assert ["streams", "sensor_minute"] in [line.split() for line in lines]
    assert shown["detail"] is None  # the current contract does not require the field
    assert (shown["reason"], shown["state"], shown["streams"]) == (
        "missing_field:humidity",
        "pending",
        ["sensor_minute"],
    )


def test_a_record_is_discarded_once(run: Callable, quarantine: None) -> None:
    assert (
        run("quarantine", "discard", "sensors", "0:1", "--why", "a test").out == "1 of 1 records discarded\n"
    )
    second = run("quarantine", "discard", "sensors", "0:1", "0:4")
    assert second.out == "1 of 1 records discarded\n"
    assert "sensors 0:1 skipped: it is already discarded" in second.err
    assert "0:4" not in second.err
    assert (
        run("quarantine", "discard", "sensors", "0:1").out
        == "no pending record is selected; nothing was discarded\n"
    )
    shown = json.loads(run("quarantine", "show", "sensors", "0:1", "--json").out)
    assert (shown["state"], shown["why"]) == ("discarded", "a test")
    actions = json.loads(run("actions", "--target", "sensors", "--json").out)
    assert [action["action"] for action in actions] == ["quarantine discard"] * 2
    assert actions[0]["details"] == {"records": 1, "items": ["0:1"], "why": "a test"}


def test_a_record_selected_twice_is_counted_once(run: Callable, quarantine: None) -> None:
    result = run("quarantine", "discard", "sensors", "0:1", "--reason", "mal")
    assert result.out == "2 of 2 records discarded\n"
    second = run("quarantine", "discard", "sensors", "0:1", "0:1", "--all")
    assert second.err.count("sensors 0:1 skipped") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
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
def test_invalid_arguments_are_refused_in_one_line(
    run: Callable, quarantine: None, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = run("quarantine", *arguments)
    assert result.code == code
    assert message in result.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"partition": 0, "offset": 3, "value": None}, "the value is null"),
        (
            {"partition": 0, "offset": 5, "value": "repaired", "value_base64": "//4="},
            "both value and value_base64 are set",
        ),
        ({"partition": 1.7, "offset": 3, "value": "repaired"}, "1.7 is not an integer"),
        ({"partition": 0, "offset": "3", "value": "repaired"}, "'3' is not an integer"),
    ],
)
def test_an_invalid_repaired_record_is_refused_with_its_line(
    run: Callable, quarantine: None, tmp_path: Path, line: dict[str, object], message: str
) -> None:
    repaired_file = tmp_path / "repaired.jsonl"
    repaired_file.write_text(json.dumps(line), "utf-8")
    result = run("quarantine", "replay", "sensors", "--repaired", str(repaired_file))
    assert result.code == 2
    assert "line 1 of --repaired" in result.err
    assert message in result.err


def read_sensors(broker: LocalBroker) -> list[tuple[int, bytes | None, bytes | None]]:
    """Read the whole topic."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t", "enable.partition.eof": True,
                       "auto.offset.reset": "earliest"})  # fmt: skip
    open_partitions = {0, 1, 2}
    reader.assign([TopicPartition("sensors", number, 0) for number in open_partitions])
    messages = []
    while open_partitions:
        for message in reader.consume(500, 0.1):
            if message.error():
                open_partitions.discard(message.partition())
            else:
                messages.append((message.partition(), message.key(), message.value()))
    reader.close()
    return messages


@pytest.mark.kafka
def test_records_are_replayed_once_and_invalid_ones_refused(
    run: Callable, quarantine: None, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    run("topics", "apply")
    before = len(read_sensors(broker))
    repaired_file = tmp_path / "repaired.jsonl"
    lines = [
        {"partition": 0, "offset": 1, "value": {**VALID, "id": "repaired"}},
        {"partition": 0, "offset": 3, "value": "{"},
    ]
    repaired_file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    result = run("quarantine", "replay", "sensors", "--all", "--repaired", str(repaired_file), "--json")
    records = json.loads(result.out)
    assert result.code == 1
    assert (records["decided"], records["sent"]) == (2, 2)
    refused = {
        record["position"]: record["reason"].split(":")[0].split(", and ")[0]
        for record in records["refused"]
        # Other tests leave dead letters of the topic in the broker that they share.
        if not record["position"].startswith("dead-letters/")
    }
    assert refused == {
        "0:3": "it still violates the contract",
        "0:4": "it still violates the contract",
        "0:9": "stream sensor_minute has read up to offset 6 only",
    }
    new_records = (
        read_sensors(broker)[before:]
        if before == 0
        else [record for record in read_sensors(broker) if record[1] == b"a"]
    )
    assert {value for _, _, value in new_records} >= {
        json.dumps({**VALID, "id": "repaired"}, separators=(",", ":")).encode(),
        QUARANTINED[1][1],
    }
    assert len(read_sensors(broker)) == before + 2
    second = json.loads(run("quarantine", "replay", "sensors", "--json").out)
    assert (second["decided"], second["sent"], len(read_sensors(broker))) == (0, 0, before + 2)
    (action,) = json.loads(run("actions", "--target", "sensors", "--json").out)
    assert (action["action"], action["details"]["records"]) == ("quarantine replay", 2)
    states = json.loads(run("quarantine", "list", "sensors", "--json").out)
    assert states["counts"] == {"pending": 3, "replaying": 0, "replayed": 2, "discarded": 0}
    assert states["records"][0]["state"].startswith("replayed to ")


TOPIC = "ad-clicks"
"""A topic without records of other tests."""


@pytest.mark.kafka
def test_dead_letters_are_listed_repaired_and_replayed_once(
    run: Callable, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The trial: 2,000 records vanished, and only a Kafka consumer that you wrote could show why."""
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    run("topics", "apply")
    valid = {"id": "1", "impression": "i", "at": 1}
    assert set(valid) == {field.name for field in load_contract(TOPIC).fields}
    records = [valid, {**valid, "at": "soon"}, {**valid, "impression": 5}, {"id": "4"}]
    source = tmp_path / "records.jsonl"
    source.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    assert run("ingest", "json-lines", "--path", str(source), "--topic", TOPIC).code == 1

    lines = run("quarantine", "list", TOPIC).out.splitlines()
    assert lines[-2:] == [
        "0 quarantined = 0 pending + 0 replaying + 0 replayed + 0 discarded",
        "3 dead letters = 3 pending + 0 replaying + 0 replayed + 0 discarded",
    ]
    listed = json.loads(run("quarantine", "list", TOPIC, "--json").out)["records"]
    by_value = {record["value"]: record for record in listed}
    wrong_type = by_value[json.dumps(records[2])]
    assert wrong_type["reason"].startswith("wrong_type:impression (")
    assert wrong_type["streams"][0].startswith("producer ")
    addresses = {
        value: f"dead-letters/{record['partition']}:{record['offset']}" for value, record in by_value.items()
    }
    shown = run("quarantine", "show", TOPIC, addresses[json.dumps(records[2])]).out
    assert wrong_type["reason"] in shown

    repaired = tmp_path / "repaired.jsonl"
    repaired.write_text(json.dumps({**wrong_type, "value": json.dumps({**valid, "id": "3"})}) + "\n", "utf-8")
    for decided in (1, 0):
        result = run("quarantine", "replay", TOPIC, "--repaired", str(repaired), "--json")
        assert json.loads(result.out) == {"decided": decided, "sent": decided, "refused": []}
    refused = json.loads(run("quarantine", "replay", TOPIC, addresses[json.dumps(records[3])], "--json").out)
    assert refused["refused"][0]["reason"].startswith("it still violates the contract: missing_field:")
    assert (
        run("quarantine", "discard", TOPIC, addresses[json.dumps(records[1])]).out
        == "1 of 1 records discarded\n"
    )
    states = json.loads(run("quarantine", "list", TOPIC, "--json").out)
    assert states["dead_letter_counts"] == {"pending": 1, "replaying": 0, "replayed": 1, "discarded": 1}
    values = [record.value for record in read_topic(broker.bootstrap, TOPIC)]
    assert sorted(json.loads(value or b"")["id"] for value in values) == ["1", "3"]

    printed = run("consume", f"{TOPIC}.dead-letters", "--count", "3", "--group", "headers").out
    assert printed.count("penstock-reason:wrong_type:impression") == 1
    assert printed.count("penstock-reason:missing_field:") == 1


def test_dead_letters_that_cannot_be_read_are_no_success(
    run: Callable, quarantine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = find_free_ports(1)
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", f"127.0.0.1:{port}")
    result = run("quarantine", "list", "sensors")
    assert result.code == 1
    assert result.out.splitlines()[-1] == "5 quarantined = 5 pending + 0 replaying + 0 replayed + 0 discarded"
    assert f"dead letters are not shown. Cannot read sensors.dead-letters at 127.0.0.1:{port}" in result.err
