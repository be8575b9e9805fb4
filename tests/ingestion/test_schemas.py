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

from penstock.ingestion.contracts import (
    Contract,
    ContractField,
    JsonCodec,
    json_codec,
    load_contract,
    load_contracts,
)
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.contracts.avro_columns import AvroColumnScan
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.schemas import parse_schema_fields, to_avro_schema, to_json_schema
from penstock.ingestion.errors import IncompatibleChangeError, InvalidRecordError, RegistryError
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.registry import FileRegistry, register_contract

SCALAR_NAMES = ["string", "boolean", "int", "long", "float", "double"]
SAMPLE_VALUES = {"string": "x", "boolean": True, "int": 7, "long": 2**40, "float": 0.5, "double": 0.5}
FIELD_TYPES = st.sampled_from([*SCALAR_NAMES, *(f"array<{name}>" for name in SCALAR_NAMES)])
FIELD_LISTS = st.lists(
    st.builds(ContractField, st.sampled_from("abcde"), FIELD_TYPES, st.just("A field."), st.booleans()),
    min_size=1,
    unique_by=lambda field: field.name,
).map(tuple)


def as_avro(contract: Contract) -> Contract:
    return dataclasses.replace(contract, encoding="avro")


SENSORS_AVRO = as_avro(load_contract("sensors"))


def make_codec(contract: Contract = SENSORS_AVRO) -> AvroCodec:
    return AvroCodec(contract, 1, {1: to_avro_schema(contract)}.get)


def encode_readings(number: int) -> list[bytes]:
    made = islice(
        SensorGenerator(1).generate_records(0, make_even_send_times(1_700_000_000_000, 1_000)), number
    )
    return [make_codec().encode(record) for record in made]


@pytest.mark.parametrize("contract", load_contracts(), ids=lambda contract: contract.topic)
def test_a_contract_survives_the_way_to_either_schema_and_back(contract: Contract):
    assert parse_schema_fields(to_json_schema(contract)) == contract.fields
    plain = tuple(
        dataclasses.replace(field, type="long" if field.type == "timestamp" else field.type)
        for field in contract.fields
    )
    assert parse_schema_fields(to_avro_schema(contract)) == plain


@given(FIELD_LISTS, FIELD_LISTS)
def test_what_is_called_compatible_is_what_avro_can_read(
    old: tuple[ContractField, ...], new: tuple[ContractField, ...]
):
    writer, reader = (to_avro_schema(Contract("t", "T.", fields)) for fields in (old, new))
    full = {field.name: sample_value(field) for field in old}
    bare = {field.name: sample_value(field) if field.required else None for field in old}
    readable = all(avro_can_read(writer, reader, record) for record in (full, bare))
    assert (find_violations(old, new, "backward") == ()) == readable
    assert find_violations(new, old, "forward") != () or readable


EXTREME_VALUES = {
    "string": ['"x"', '""'],
    "boolean": ["true", "false"],
    "int": [str(-(2**31)), str(2**31 - 1)],
    "long": [str(-(2**63)), str(2**63 - 1)],
    "float": ["0.5", "-1e300"],
    "double": ["0.5", "-1e300"],
    "timestamp": ["-62135596800000", "253402300799999"],
}
EXTREME_FIELD_LISTS = st.lists(
    st.builds(
        ContractField,
        st.sampled_from("ab"),
        st.sampled_from([*EXTREME_VALUES, *(f"array<{name}>" for name in EXTREME_VALUES)]),
        st.just("A field."),
        st.booleans(),
    ),
    min_size=1,
    unique_by=lambda field: field.name,
).map(tuple)


@given(EXTREME_FIELD_LISTS, EXTREME_FIELD_LISTS)
def test_what_is_called_compatible_is_what_the_reader_of_json_takes(
    old: tuple[ContractField, ...], new: tuple[ContractField, ...]
):
    reader = json_codec(Contract("t", "T.", new))
    readable = all(accepts_record(reader, record) for record in make_extreme_records(old))
    assert (find_violations(old, new, "backward", "json") == ()) == readable
    assert (find_violations(new, old, "forward", "json") == ()) == readable


def make_extreme_records(fields: tuple[ContractField, ...]) -> Iterator[bytes]:
    """Yield records with the least and the greatest of each field, and one with what is required alone."""
    for at in (0, 1):
        yield as_json({field.name: extreme_value(field.type, at) for field in fields})
    yield as_json({field.name: extreme_value(field.type, 0) for field in fields if field.required})


def extreme_value(kind: str, at: int) -> str:
    return f"[{EXTREME_VALUES[kind[6:-1]][at]}]" if kind.startswith("array") else EXTREME_VALUES[kind][at]


def as_json(members: dict[str, str]) -> bytes:
    return "{{{}}}".format(",".join(f'"{name}":{value}' for name, value in members.items())).encode()


def accepts_record(reader: JsonCodec, record: bytes) -> bool:
    try:
        reader.decode(record)
    except InvalidRecordError:
        return False
    return True


def sample_value(field: ContractField) -> object:
    return [SAMPLE_VALUES[field.type[6:-1]]] if field.type.startswith("array") else SAMPLE_VALUES[field.type]


def avro_can_read(writer: object, reader: object, record: dict[str, object]) -> bool:
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
    first = register_contract(registry, SENSORS_AVRO)
    assert register_contract(registry, SENSORS_AVRO) == first
    required = dataclasses.replace(
        SENSORS_AVRO, fields=(*SENSORS_AVRO.fields, ContractField("unit", "string", "The unit."))
    )
    with pytest.raises(IncompatibleChangeError, match="'unit' breaks backward"):
        register_contract(registry, required)
    optional = dataclasses.replace(
        SENSORS_AVRO,
        fields=(*SENSORS_AVRO.fields, ContractField("unit", "string", "The unit.", required=False)),
    )
    assert register_contract(registry, optional).version == 2
    dropped = dataclasses.replace(
        SENSORS_AVRO,
        fields=tuple(f for f in SENSORS_AVRO.fields if f.name != "site"),
        compatibility="forward",
    )
    with pytest.raises(IncompatibleChangeError, match="'site' breaks forward"):
        register_contract(registry, dropped)
    assert [found.version for found in registry.list_versions("sensors-value")] == [1, 2]


def test_a_registry_that_was_damaged_is_refused(tmp_path: Path):
    register_contract(FileRegistry(tmp_path), SENSORS_AVRO)
    (tmp_path / "schemas.json").write_text('{"schemas": {')
    with pytest.raises(RegistryError, match="Restore"):
        FileRegistry(tmp_path).list_versions("sensors-value")


def test_avro_needs_a_registry():
    with pytest.raises(RegistryError, match="sensors"):
        create_record_format(SENSORS_AVRO)


def test_records_written_under_an_older_schema_are_still_read(tmp_path: Path):
    registry = FileRegistry(tmp_path)
    old = dataclasses.replace(
        SENSORS_AVRO, fields=tuple(f for f in SENSORS_AVRO.fields if f.name != "humidity")
    )
    value = create_record_format(old, registry).encode(
        make_codec(old).decode(make_codec(old).encode(make_codec().decode(encode_readings(1)[0])))
    )
    checked = create_record_format(SENSORS_AVRO, registry).checker.check(
        SourceBatch([value], is_encoded=True)
    )
    assert (checked.invalid, checked.keys) == ({}, [b"device-0016"])


def test_json_for_an_avro_topic_is_encoded_on_its_way(tmp_path: Path):
    form = create_record_format(SENSORS_AVRO, FileRegistry(tmp_path))
    record = {"id": "a", "device": "d", "site": "s", "at": 1, "temperature": 2.5}
    checked = form.checker.check(SourceBatch([json.dumps(record).encode(), b"{"]))
    assert checked.keys == [b"d", None]
    assert checked.invalid[1].reason == "malformed"
    assert checked.values[1] == b"{"
    assert make_codec().decode(checked.values[0]).temperature == 2.5


def test_json_that_is_too_large_once_it_is_avro_is_told(tmp_path: Path):
    small = dataclasses.replace(
        ODD_CONTRACT,
        max_bytes=1_000,
        fields=(*ODD_CONTRACT.fields, ContractField("n", "array<double>", "N.")),
    )
    checker = create_record_format(small, FileRegistry(tmp_path)).checker
    record = {"text": "t", "deep": [], "yes": True, "at": 1}
    checked = checker.check(SourceBatch([json.dumps(record | {"n": [0] * n}).encode() for n in (100, 200)]))
    assert {place: error.reason for place, error in checked.invalid.items()} == {1: "too large"}


def test_avro_is_judged_with_its_key():
    made = [
        make_codec(ODD_CONTRACT).encode({"text": "k" * n, "deep": [], "yes": True, "at": 1})
        for n in (480, 500)
    ]
    small = dataclasses.replace(ODD_CONTRACT, max_bytes=1_000)
    from penstock.ingestion.producer.avro_checker import AvroChecker

    checked = AvroChecker(make_codec(small)).check(SourceBatch(made, is_encoded=True))
    assert {place: error.reason for place, error in checked.invalid.items()} == {1: "too large"}
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
    checked = create_sensors_format().checker.check(
        SourceBatch([*encode_readings(3), break_it(encode_readings(1)[0])], is_encoded=True)
    )
    assert {place: error.reason for place, error in checked.invalid.items()} == {3: reason}


def create_sensors_format():
    from penstock.ingestion.producer.avro_checker import AvroChecker
    from penstock.ingestion.producer.record_format import RecordFormat

    return RecordFormat(AvroChecker(make_codec()), make_codec().encode, make_codec().decode)


ODD_CONTRACT = Contract(
    "odd",
    "Odd.",
    (
        ContractField("text", "string", "T."),
        ContractField("maybe", "string", "M.", required=False),
        ContractField("many", "array<string>", "M.", required=False),
        ContractField("deep", "array<array<int>>", "D."),
        ContractField("yes", "boolean", "Y."),
        ContractField("at", "timestamp", "A."),
        ContractField("small", "float", "S.", required=False),
    ),
    key="text",
    encoding="avro",
)


def make_odd_record(chance: random.Random) -> dict[str, object]:
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
    chance, coder = random.Random(11), make_codec(ODD_CONTRACT)
    records = [make_odd_record(chance) for _ in range(3_000)]
    values = [coder.encode(record) for record in records]
    columns = AvroColumnScan(values, ODD_CONTRACT.fields, 5)
    assert columns.valid_mask.all()
    assert [key.decode() for key in columns.key_texts(ODD_CONTRACT.get_field("text"))] == [
        record["text"] for record in records
    ]
    damaged = [damage_value(value, chance) for value in values]
    cleared = AvroColumnScan(damaged, ODD_CONTRACT.fields, 5).valid_mask.tolist()
    assert any(cleared)
    assert not [v for v, good in zip(damaged, cleared, strict=True) if good and not is_decodable(coder, v)]


def damage_value(value: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(5, len(value))
    kind = chance.randrange(3)
    if kind == 0:
        return value[:place] + bytes([chance.randrange(256)]) + value[place + 1 :]
    return value[:place] + (b"" if kind == 1 else chance.randbytes(2)) + value[place + (kind == 1) :]


def is_decodable(coder: AvroCodec, value: bytes) -> bool:
    try:
        coder.decode(value)
    except InvalidRecordError:
        return False
    return True
