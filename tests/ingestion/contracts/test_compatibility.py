"""Compatible changes of contracts, compared with what Avro and JSON readers accept."""

import io
from collections.abc import Iterator
from typing import get_args

import fastavro
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingestion.contracts import (
    Contract,
    ContractField,
    JsonCodec,
    json_codec,
)
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.contract_modes import UnknownFieldPolicy
from penstock.ingestion.contracts.schemas import to_avro_schema
from penstock.ingestion.errors import InvalidRecordError

SCALAR_NAMES = ["string", "boolean", "int", "long", "float", "double"]


SAMPLE_VALUES = {"string": "x", "boolean": True, "int": 7, "long": 2**40, "float": 0.5, "double": 0.5}


FIELD_TYPES = st.sampled_from([*SCALAR_NAMES, *(f"array<{name}>" for name in SCALAR_NAMES)])


FIELD_LISTS = st.lists(
    st.builds(ContractField, st.sampled_from("abcde"), FIELD_TYPES, st.just("A field."), st.booleans()),
    min_size=1,
    unique_by=lambda field: field.name,
).map(tuple)


@given(FIELD_LISTS, FIELD_LISTS)
def test_compatible_schemas_are_those_that_avro_can_read(
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
def test_compatible_contracts_are_those_whose_json_is_accepted(
    old: tuple[ContractField, ...], new: tuple[ContractField, ...]
):
    for policy in get_args(UnknownFieldPolicy):
        reader, refuses = json_codec(Contract("t", "T.", new, unknown_fields=policy)), policy == "refuse"
        readable = all(accepts_record(reader, record) for record in make_extreme_records(old))
        backward = find_violations(old, new, "backward", "json", new_refuses_unknown=refuses)
        assert (backward == ()) == readable
        forward = find_violations(new, old, "forward", "json", old_refuses_unknown=refuses)
        assert (forward == ()) == readable


def make_extreme_records(fields: tuple[ContractField, ...]) -> Iterator[bytes]:
    """Yield records with the least and the greatest value of each field, and one of required fields only."""
    for index in (0, 1):
        yield as_json({field.name: extreme_value(field.type, index) for field in fields})
    yield as_json({field.name: extreme_value(field.type, 0) for field in fields if field.required})


def extreme_value(kind: str, index: int) -> str:
    return (
        f"[{EXTREME_VALUES[kind[6:-1]][index]}]" if kind.startswith("array") else EXTREME_VALUES[kind][index]
    )


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
        decoded = fastavro.schemaless_reader(buffer, writer, reader)
    except (fastavro.read.SchemaResolutionError, TypeError):
        return False
    # fastavro reads a null of the writer as the value of a required field; that does not count as readable.
    nulls = {item["name"] for item in reader["fields"] if not isinstance(item["type"], list)}
    return all(value is not None for name, value in decoded.items() if name in nulls)
