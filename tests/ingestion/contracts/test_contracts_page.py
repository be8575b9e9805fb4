"""The page about contracts: its example is valid, and every type has a row with an accepted value."""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from penstock.ingestion.contracts import Contract, ContractField, json_codec, parse_contract
from penstock.ingestion.contracts.contract_parser import CONTRACT_KEYS, FIELD_KEYS, LAYOUT_KEYS
from penstock.ingestion.contracts.field_types.timestamp_formats import FORMATS_BY_NAME
from penstock.ingestion.contracts.field_types.type_discovery import FIELD_TYPES, parse_type
from penstock.ingestion.errors import InvalidRecordError

PAGE = Path("ingestion/docs/contracts.md").read_text("utf-8")


def read_table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its header."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def find_code(cell: str) -> str:
    match = re.match(r"`([^`]+)`", cell)
    assert match is not None, cell
    return match[1]


def accept(type_text: str, member_json: str) -> Any:
    codec = json_codec(Contract("t", "T.", (ContractField("f", type_text, "F."),)))
    record: Any = codec.decode(f'{{"f": {member_json}}}'.encode())
    return record.f


def test_the_example_of_the_page_is_a_valid_contract() -> None:
    example = PAGE.split("```yaml\n")[1].split("```")[0]
    contract = parse_contract(yaml.safe_load(example))
    assert contract.get_field("ordered_at").type == "timestamp(iso8601)"
    assert contract.get_field("address").type == "struct<city: string, zip?: string>"


def test_every_type_has_a_row_with_a_value_that_it_accepts() -> None:
    rows = read_table("Types")
    types = {find_code(row[0]): row for row in rows}
    assert {parse_type(text).keyword for text in types} == set(FIELD_TYPES.kinds_by_name)
    for text, row in types.items():
        accept(text, find_code(row[1]))
        stored = find_code(row[4]).replace("a: INT, b: INT", "`a`: INT, `b`: INT")
        assert parse_type(text).spark_type == stored


def test_every_format_of_timestamps_has_a_row_with_a_value_that_it_accepts() -> None:
    rows = {find_code(row[0]): row for row in read_table("Timestamps")}
    assert set(rows) == set(FORMATS_BY_NAME)
    times = {
        name: parse_type(f"timestamp({name})").to_epoch_ms(accept(f"timestamp({name})", find_code(row[1])))
        for name, row in rows.items()
    }
    assert times.pop("iso8601") == 1_767_225_600_250
    assert set(times.values()) == {1_767_225_600_000}


def test_every_key_has_a_row() -> None:
    assert {find_code(row[0]) for row in read_table("Keys")} == set(CONTRACT_KEYS)
    assert {find_code(row[0]) for row in read_table("Fields")} == set(FIELD_KEYS)
    [layout] = [row[1] for row in read_table("Keys") if row[0] == "`layout`"]
    assert all(f"`{key}`" in layout for key in LAYOUT_KEYS)


def test_the_messages_of_the_page_are_those_of_the_judge() -> None:
    codec = json_codec(Contract("t", "T.", (ContractField("ordered_at", "timestamp", "A."),)))
    messages = []
    for value in ("2026-01-01T00:00:00Z", 1_767_225_600):
        try:
            codec.decode(msgspec.json.encode({"ordered_at": value}))
        except InvalidRecordError as error:
            messages.append(str(error))
    assert "\n".join(messages) == PAGE.split("```text\n")[1].split("\n```")[0]
