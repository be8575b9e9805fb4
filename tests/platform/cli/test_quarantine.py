"""Commands that list, repair, replay and discard quarantined records."""

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
    assert lines[1].split()[:5] == ["0:1", "1970-01-01", "00:00:00", "malformed", "sensor_minute"]
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
    assert run("quarantine", "discard", "sensors", "0:1").out == "0 of 0 records discarded\n"
    shown = json.loads(run("quarantine", "show", "sensors", "0:1", "--json").out)
    assert (shown["state"], shown["why"]) == ("discarded", "a test")


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
    assert {
        record["position"]: record["reason"].split(":")[0].split(";")[0] for record in records["refused"]
    } == {
        "0:3": "it still violates the contract",
        "0:4": "it still violates the contract",
        "0:9": "sensor_minute has read only up to offset 6",
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
    states = json.loads(run("quarantine", "list", "sensors", "--json").out)
    assert states["counts"] == {"pending": 3, "replaying": 0, "replayed": 2, "discarded": 0}
    assert states["records"][0]["state"].startswith("replayed to ")
