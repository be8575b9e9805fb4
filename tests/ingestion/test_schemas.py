import dataclasses
import io
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingestion.contracts import Contract, Field, JsonCodec, contracts, json_codec, load_contract
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.contracts.avro_columns import AvroColumns
from penstock.ingestion.contracts.compatibility import violations
from penstock.ingestion.contracts.schemas import avro_schema, fields_in, json_schema
from penstock.ingestion.errors import BrokenRecordError, IncompatibleChangeError, RegistryError
from penstock.ingestion.generators import Sensors, evenly
from penstock.ingestion.producer import Batch, format_of
from penstock.ingestion.registry import FileRegistry, register_contract

SCALARS = ["string", "boolean", "int", "long", "float", "double"]
VALUES = {"string": "x", "boolean": True, "int": 7, "long": 2**40, "float": 0.5, "double": 0.5}
TYPES = st.sampled_from([*SCALARS, *(f"array<{name}>" for name in SCALARS)])
FIELDS = st.lists(
    st.builds(Field, st.sampled_from("abcde"), TYPES, st.just("A field."), st.booleans()),
    min_size=1,
    unique_by=lambda field: field.name,
).map(tuple)


def avro(contract: Contract) -> Contract:
    return dataclasses.replace(contract, encoding="avro")


SENSORS = avro(load_contract("sensors"))


def codec(contract: Contract = SENSORS) -> AvroCodec:
    return AvroCodec(contract, 1, {1: avro_schema(contract)}.get)


def readings(number: int) -> list[bytes]:
    made = islice(Sensors(1).records(0, evenly(1_700_000_000_000, 1_000)), number)
    return [codec().encode(record) for record in made]


@pytest.mark.parametrize("contract", contracts(), ids=lambda contract: contract.topic)
def test_a_contract_survives_the_way_to_either_schema_and_back(contract: Contract):
    assert fields_in(json_schema(contract)) == contract.fields
    plain = tuple(
        dataclasses.replace(field, type="long" if field.type == "timestamp" else field.type)
        for field in contract.fields
    )
    assert fields_in(avro_schema(contract)) == plain


@given(FIELDS, FIELDS)
def test_what_is_called_compatible_is_what_avro_can_read(old: tuple[Field, ...], new: tuple[Field, ...]):
    writer, reader = (avro_schema(Contract("t", "T.", fields)) for fields in (old, new))
    full = {field.name: sample(field) for field in old}
    bare = {field.name: sample(field) if field.required else None for field in old}
    readable = all(reads(writer, reader, record) for record in (full, bare))
    assert (violations(old, new, "backward") == ()) == readable
    assert violations(new, old, "forward") != () or readable


EXTREMES = {
    "string": ['"x"', '""'],
    "boolean": ["true", "false"],
    "int": [str(-(2**31)), str(2**31 - 1)],
    "long": [str(-(2**63)), str(2**63 - 1)],
    "float": ["0.5", "-1e300"],
    "double": ["0.5", "-1e300"],
    "timestamp": ["-62135596800000", "253402300799999"],
}
OLD_AND_NEW = st.lists(
    st.builds(
        Field,
        st.sampled_from("ab"),
        st.sampled_from([*EXTREMES, *(f"array<{name}>" for name in EXTREMES)]),
        st.just("A field."),
        st.booleans(),
    ),
    min_size=1,
    unique_by=lambda field: field.name,
).map(tuple)


@given(OLD_AND_NEW, OLD_AND_NEW)
def test_what_is_called_compatible_is_what_the_reader_of_json_takes(
    old: tuple[Field, ...], new: tuple[Field, ...]
):
    reader = json_codec(Contract("t", "T.", new))
    readable = all(takes(reader, record) for record in extreme_records(old))
    assert (violations(old, new, "backward", "json") == ()) == readable
    assert (violations(new, old, "forward", "json") == ()) == readable


def extreme_records(fields: tuple[Field, ...]) -> Iterator[bytes]:
    """Yield records with the least and the greatest of each field, and one with what is required alone."""
    for at in (0, 1):
        yield as_json({field.name: extreme(field.type, at) for field in fields})
    yield as_json({field.name: extreme(field.type, 0) for field in fields if field.required})


def extreme(kind: str, at: int) -> str:
    return f"[{EXTREMES[kind[6:-1]][at]}]" if kind.startswith("array") else EXTREMES[kind][at]


def as_json(members: dict[str, str]) -> bytes:
    return "{{{}}}".format(",".join(f'"{name}":{value}' for name, value in members.items())).encode()


def takes(reader: JsonCodec, record: bytes) -> bool:
    try:
        reader.decode(record)
    except BrokenRecordError:
        return False
    return True


def sample(field: Field) -> object:
    return [VALUES[field.type[6:-1]]] if field.type.startswith("array") else VALUES[field.type]


def reads(writer: object, reader: object, record: dict[str, object]) -> bool:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, writer, record)
    buffer.seek(0)
    try:
        found = fastavro.schemaless_reader(buffer, writer, reader)
    except (fastavro.read.SchemaResolutionError, TypeError):
        return False
    # A writer's null is "read" by fastavro as a required field's value: that is no reading.
    nulls = {item["name"] for item in reader["fields"] if not isinstance(item["type"], list)}
    return all(value is not None for name, value in found.items() if name in nulls)


def test_an_incompatible_change_is_refused_with_the_field_and_the_rule(tmp_path: Path):
    registry = FileRegistry(tmp_path)
    first = register_contract(registry, SENSORS)
    assert register_contract(registry, SENSORS) == first
    required = dataclasses.replace(SENSORS, fields=(*SENSORS.fields, Field("unit", "string", "The unit.")))
    with pytest.raises(IncompatibleChangeError, match="'unit' breaks backward"):
        register_contract(registry, required)
    optional = dataclasses.replace(
        SENSORS, fields=(*SENSORS.fields, Field("unit", "string", "The unit.", required=False))
    )
    assert register_contract(registry, optional).version == 2
    dropped = dataclasses.replace(
        SENSORS, fields=tuple(f for f in SENSORS.fields if f.name != "site"), compatibility="forward"
    )
    with pytest.raises(IncompatibleChangeError, match="'site' breaks forward"):
        register_contract(registry, dropped)
    assert [found.version for found in registry.versions("sensors-value")] == [1, 2]


def test_a_registry_that_was_damaged_is_refused(tmp_path: Path):
    register_contract(FileRegistry(tmp_path), SENSORS)
    (tmp_path / "schemas.json").write_text('{"schemas": {')
    with pytest.raises(RegistryError, match="restore"):
        FileRegistry(tmp_path).versions("sensors-value")


def test_avro_needs_a_registry():
    with pytest.raises(RegistryError, match="sensors"):
        format_of(SENSORS)


def test_records_written_under_an_older_schema_are_still_read(tmp_path: Path):
    registry = FileRegistry(tmp_path)
    old = dataclasses.replace(SENSORS, fields=tuple(f for f in SENSORS.fields if f.name != "humidity"))
    value = format_of(old, registry).encode(
        codec(old).decode(codec(old).encode(codec().decode(readings(1)[0])))
    )
    checked = format_of(SENSORS, registry).checker.check(Batch([value], encoded=True))
    assert (checked.broken, checked.keys) == ({}, [b"device-0016"])


def test_json_for_an_avro_topic_is_encoded_on_its_way(tmp_path: Path):
    form = format_of(SENSORS, FileRegistry(tmp_path))
    record = {"id": "a", "device": "d", "site": "s", "at": 1, "temperature": 2.5}
    checked = form.checker.check(Batch([json.dumps(record).encode(), b"{"]))
    assert checked.keys == [b"d", None]
    assert checked.broken[1].reason == "malformed"
    assert checked.values[1] == b"{"
    assert codec().decode(checked.values[0]).temperature == 2.5


def test_json_that_is_too_large_once_it_is_avro_is_told(tmp_path: Path):
    small = dataclasses.replace(ODD, max_bytes=1_000, fields=(*ODD.fields, Field("n", "array<double>", "N.")))
    checker = format_of(small, FileRegistry(tmp_path)).checker
    record = {"text": "t", "deep": [], "yes": True, "at": 1}
    checked = checker.check(Batch([json.dumps(record | {"n": [0] * n}).encode() for n in (100, 200)]))
    assert {place: error.reason for place, error in checked.broken.items()} == {1: "too large"}


def test_avro_is_judged_with_its_key():
    made = [codec(ODD).encode({"text": "k" * n, "deep": [], "yes": True, "at": 1}) for n in (480, 500)]
    small = dataclasses.replace(ODD, max_bytes=1_000)
    from penstock.ingestion.producer.avro_checking import AvroChecker

    checked = AvroChecker(codec(small)).check(Batch(made, encoded=True))
    assert {place: error.reason for place, error in checked.broken.items()} == {1: "too large"}
    assert checked.keys == [b"k" * 480, None]


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda value: value[:-1], "malformed"),
        (lambda value: value + b"\0", "malformed"),
        (lambda value: b"\1" + value[1:], "wrong schema"),
        (lambda value: b"\0\0\0\0\7" + value[5:], "wrong schema"),
        (lambda _value: b"", "wrong schema"),
        (lambda value: value.replace(b"device-", b"\xff\xfevice-"), "invalid utf-8"),
        (lambda value: value[:5] + b"\xff" * 20, "malformed"),
        (lambda value: value + b"x" * 10_000_000, "too large"),
    ],
)
def test_broken_avro_says_why(break_it, reason: str):
    checked = format_of_sensors().checker.check(Batch([*readings(3), break_it(readings(1)[0])], encoded=True))
    assert {place: error.reason for place, error in checked.broken.items()} == {3: reason}


def format_of_sensors():
    from penstock.ingestion.producer.avro_checking import AvroChecker
    from penstock.ingestion.producer.formats import Format

    return Format(AvroChecker(codec()), codec().encode, codec().decode)


ODD = Contract(
    "odd",
    "Odd.",
    (
        Field("text", "string", "T."),
        Field("maybe", "string", "M.", required=False),
        Field("many", "array<string>", "M.", required=False),
        Field("deep", "array<array<int>>", "D."),
        Field("yes", "boolean", "Y."),
        Field("at", "timestamp", "A."),
        Field("small", "float", "S.", required=False),
    ),
    key="text",
    encoding="avro",
)


def odd_record(chance: random.Random) -> dict[str, object]:
    words = ["", "a", "wört", "名", "x" * 200]
    return {
        "text": chance.choice(words),
        "maybe": chance.choice([None, *words]),
        "many": chance.choice([None, [], chance.choices(words, k=3)]),
        "deep": [
            [chance.randint(-(2**31), 2**31 - 1)] * chance.randrange(3) for _ in range(chance.randrange(3))
        ],
        "yes": chance.random() < 0.5,
        "at": chance.randint(-(10**12), 10**13),
        "small": chance.choice([None, 0.5]),
    }


def test_a_pass_over_columns_clears_whole_records_and_never_one_that_fastavro_refuses():
    chance, coder = random.Random(11), codec(ODD)
    records = [odd_record(chance) for _ in range(3_000)]
    values = [coder.encode(record) for record in records]
    columns = AvroColumns(values, ODD.fields, 5)
    assert columns.good.all()
    assert [key.decode() for key in columns.keys(ODD.field("text"))] == [record["text"] for record in records]
    damaged = [damage(value, chance) for value in values]
    cleared = AvroColumns(damaged, ODD.fields, 5).good.tolist()
    assert any(cleared)
    assert not [v for v, good in zip(damaged, cleared, strict=True) if good and not decodes(coder, v)]


def damage(value: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(5, len(value))
    kind = chance.randrange(3)
    if kind == 0:
        return value[:place] + bytes([chance.randrange(256)]) + value[place + 1 :]
    return value[:place] + (b"" if kind == 1 else chance.randbytes(2)) + value[place + (kind == 1) :]


def decodes(coder: AvroCodec, value: bytes) -> bool:
    try:
        coder.decode(value)
    except BrokenRecordError:
        return False
    return True
