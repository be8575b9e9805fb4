"""The page about formats: its examples are valid, and its tables are complete."""

import json
import re
from pathlib import Path
from typing import get_args

import yaml
from tests.ingestion.contracts.format_contracts import FORMATS, make_format_codec, make_schemas

from penstock.ingestion.contracts import Contract, parse_contract
from penstock.ingestion.contracts.invalid_reasons import ReasonCode
from penstock.ingestion.contracts.record_formats.debezium_envelope import ENVELOPE_PARTS

PAGE = Path("ingestion/docs/formats.md").read_text("utf-8")


def find_codes(header: str) -> list[str]:
    """Return the words in code in the first column of the table with this header."""
    rows = PAGE.split(header)[1].split("\n\n")[0].splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])]


def load_examples() -> list[Contract]:
    return [
        parse_contract(yaml.safe_load(text)) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    ]


def test_every_format_has_a_row() -> None:
    assert sorted(find_codes("| `encoding` |")) == sorted(FORMATS)


def test_every_part_of_an_envelope_has_a_row() -> None:
    assert sorted(find_codes("| path in the envelope |")) == sorted((*ENVELOPE_PARTS, "source.NAME"))


def test_every_reason_of_the_judge_has_a_row() -> None:
    codes = {code.partition(":")[0] for code in find_codes("| reason |")}
    assert set(get_args(ReasonCode)) <= codes


def test_the_message_of_the_page_is_that_of_its_contract() -> None:
    orders = load_examples()[0]
    text = PAGE.split("```proto\n")[1].split("```")[0]
    fields = orders.fields
    contract = Contract("orders", "", fields, encoding="protobuf")
    assert make_schemas(contract)[1]["proto"] == text


def test_the_contract_of_changed_rows_reads_an_event() -> None:
    contract = load_examples()[1]
    event = {"before": None, "after": {"id": 1, "status": "paid"}, "op": "u", "source": {"ts_ms": 5}}
    record = make_format_codec(contract).decode(json.dumps(event).encode())
    assert (record.id, record.operation, record.changed_at) == (1, "u", 5)  # type: ignore[attr-defined]
