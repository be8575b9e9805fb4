"""Timestamps in each format: what is accepted, what it is in milliseconds, and what invalid values are told."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ingestion.avro_contracts import make_codec

from penstock.ingestion.contracts import Contract, ContractField, JsonCodec, json_codec, parse_contract
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.field_types.timestamp_formats import EPOCH_FORMATS, guess_unit
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.contracts.schemas import parse_schema_fields, to_avro_schema, to_json_schema
from penstock.ingestion.errors import ContractError, InvalidRecordError

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMATS = ["seconds", "millis", "micros", "nanos", "iso8601"]
TIMES = st.integers(1_001_894_400_000_000, 4_070_908_800_000_000).map(
    lambda microseconds: UNIX_EPOCH + timedelta(microseconds=microseconds)
)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def make_contract(type_text: str, **options: Any) -> Contract:
    return Contract("t", "T.", (ContractField("at", type_text, "A time."),), **options)


def write_time(instant: datetime, format_name: str) -> int | str:
    microseconds = (instant - UNIX_EPOCH) // timedelta(microseconds=1)
    return {
        "seconds": microseconds // 1_000_000,
        "millis": microseconds // 1000,
        "micros": microseconds,
        "nanos": microseconds * 1000,
        "iso8601": instant.isoformat(),
    }[format_name]


@given(TIMES, OFFSETS, st.sampled_from(FORMATS))
def test_a_time_is_the_same_milliseconds_in_each_format(
    instant: datetime, offset: timezone, name: str
) -> None:
    codec = json_codec(make_contract(f"timestamp({name})"))
    decoded = codec.decode(msgspec.json.encode({"at": write_time(instant.astimezone(offset), name)}))
    resolution = timedelta(seconds=1) if name == "seconds" else timedelta(milliseconds=1)
    expected = (instant - UNIX_EPOCH) // resolution * (resolution // timedelta(milliseconds=1))
    assert parse_type(f"timestamp({name})").to_epoch_ms(decoded.at) == expected  # type: ignore[attr-defined]


@given(TIMES, st.sampled_from(FORMATS))
def test_a_record_is_the_same_after_avro(instant: datetime, name: str) -> None:
    contract = make_contract(f"timestamp({name})")
    record = json_codec(contract).decode(msgspec.json.encode({"at": write_time(instant, name)}))
    codec = make_codec(contract)
    assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize(
    ("declared", "found", "fix"),
    [
        ("millis", "2026-01-01T10:00:00Z", "declare format: iso8601"),
        ("millis", "2026-01-01T10:00:00", "declare format: iso8601 and a timezone, such as timezone: UTC"),
        ("millis", 1_767_225_600, "declare format: seconds"),
        ("seconds", 1_767_225_600_000, "declare format: millis"),
        ("millis", 1_767_225_600_000_000, "declare format: micros"),
        ("micros", 1_767_225_600_000_000_000, "declare format: nanos"),
        ("iso8601", 1_767_225_600_000, "declare format: millis"),
        ("iso8601", "2026-01-01T10:00:00", "add an offset, or declare a timezone, such as timezone: UTC"),
        ("millis", "yesterday", None),
        ("millis", True, None),
    ],
)
def test_an_invalid_time_names_the_format_that_fits(declared: str, found: object, fix: str | None) -> None:
    field_type = parse_type(f"timestamp({declared})")
    assert field_type.suggest_fix(found) == fix
    assert not is_accepted(json_codec(make_contract(str(field_type))), found)


def is_accepted(codec: JsonCodec, value: object) -> bool:
    field_type = codec.contract.fields[0].parsed_type
    try:
        decoded = codec.decode(msgspec.json.encode({"at": value}))
    except InvalidRecordError:
        return False
    assert field_type.fault_finder is not None
    return field_type.fault_finder(decoded.at) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("declared", ["seconds", "millis", "micros", "nanos"])
@pytest.mark.parametrize("written", ["seconds", "millis", "micros", "nanos"])
def test_numbers_of_this_century_are_accepted_in_their_own_unit_only(declared: str, written: str) -> None:
    codec = json_codec(make_contract(f"timestamp({declared})"))
    number = write_time(datetime(2026, 1, 1, tzinfo=UTC), written)
    assert is_accepted(codec, number) == (declared == written)
    assert guess_unit(int(number)) == written


def test_a_number_of_another_unit_says_which_day_it_would_be() -> None:
    find_fault = parse_type("timestamp").fault_finder
    assert find_fault is not None
    assert find_fault(1_767_225_600) == "that is 1970-01-21; declare format: seconds"


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00",
        "2026-01-01",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "0001-01-01T00:00:00+05:00",
    ],
)
def test_text_that_is_no_time_with_an_offset_is_refused(text: str) -> None:
    assert not is_accepted(json_codec(make_contract("timestamp(iso8601)")), text)


@pytest.mark.parametrize(
    ("text", "in_utc"),
    [
        ("2026-01-15T12:00:00", "2026-01-15T11:00:00+00:00"),
        ("2026-07-15T12:00:00", "2026-07-15T10:00:00+00:00"),
        ("2026-07-15T12:00:00Z", "2026-07-15T12:00:00+00:00"),
    ],
)
def test_a_declared_timezone_applies_to_text_without_an_offset(text: str, in_utc: str) -> None:
    contract = make_contract("timestamp(iso8601, Europe/Berlin)")
    decoded: Any = json_codec(contract).decode(msgspec.json.encode({"at": text}))
    expected = (datetime.fromisoformat(in_utc) - UNIX_EPOCH) // timedelta(milliseconds=1)
    assert contract.fields[0].parsed_type.to_epoch_ms(decoded.at) == expected


def test_format_and_timezone_are_keys_of_a_field() -> None:
    document = {
        "topic": "t",
        "fields": [
            {"name": "at", "type": "timestamp", "format": "iso8601", "timezone": "Europe/Paris", "doc": "A."},
            {"name": "all", "type": "array<timestamp>", "format": "micros", "doc": "A."},
        ],
    }
    assert [field.type for field in parse_contract(document).fields] == [
        "timestamp(iso8601, Europe/Paris)",
        "array<timestamp(micros)>",
    ]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"type": "timestamp", "format": "iso8061"}, "'iso8061' is not a format of timestamps. Did you mean"),
        (
            {"type": "long", "format": "millis"},
            "'format' belongs to the type timestamp, but the type is long",
        ),
        ({"type": "timestamp", "timezone": "UTC"}, "'timezone' needs 'format: iso8601'"),
        ({"type": "timestamp", "format": "millis", "timezone": "UTC"}, "takes no timezone"),
        (
            {"type": "timestamp", "format": "iso8601", "timezone": "Europe/Berln"},
            "Did you mean 'Europe/Berlin'?",
        ),
    ],
)
def test_a_wrong_format_is_refused(keys: dict[str, str], problem: str) -> None:
    with pytest.raises(ContractError) as error:
        parse_contract({"topic": "t", "fields": [{"name": "at", "doc": "A.", **keys}]})
    assert problem in str(error.value)


@pytest.mark.parametrize("name", FORMATS)
def test_schemas_keep_the_format(name: str) -> None:
    contract = make_contract(f"timestamp({name})")
    assert parse_schema_fields(to_json_schema(contract)) == contract_fields(contract)
    logical_types = {each.name: each.logical_type for each in EPOCH_FORMATS}
    [avro_field] = to_avro_schema(contract)["fields"]
    expected = {"type": "long", "logicalType": f"timestamp-{name}"}
    plain = "string" if name == "iso8601" else "long"
    assert avro_field["type"] == (expected if logical_types.get(name) else plain)


def contract_fields(contract: Contract) -> tuple[ContractField, ...]:
    return tuple(ContractField(field.name, str(field.parsed_type), field.doc) for field in contract.fields)


@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize("new", FORMATS)
def test_another_format_is_incompatible(old: str, new: str) -> None:
    fields = [(ContractField("at", f"timestamp({name})", "A."),) for name in (old, new)]
    for encoding in ("json", "avro"):
        assert (find_violations(*fields, "backward", encoding) == ()) == (old == new)  # type: ignore[arg-type]
