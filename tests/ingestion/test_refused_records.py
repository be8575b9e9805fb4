"""Reasons of refused records, with counts and positions in files."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingestion.source_files import open_test_source

from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.refused_records import MAX_REASONS, OTHER_REASONS, RefusedReason, RefusedRecordCounter

ORDERS = Contract(
    "orders",
    "",
    (
        ContractField("id", "string", ""),
        ContractField("amount", "double", ""),
        ContractField("ordered_at", "timestamp", ""),
    ),
    event_time="ordered_at",
)


def count_refused(kind: str, path: Path, contract: Contract = ORDERS) -> tuple[RefusedReason, ...]:
    source = open_test_source(kind, path, contract)
    counter, checker = RefusedRecordCounter(contract, source), create_record_format(contract).checker
    for batch in source.read(None):
        counter.add_batch(checker.check(batch))
    return counter.summarize()


def test_two_thousand_timestamps_in_the_wrong_form_are_one_reason(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    lines = [f'{{"id":"a","amount":1,"ordered_at":"yesterday at {number}"}}' for number in range(2_000)]
    path.write_text("\n".join(["", '{"id":"a","amount":"12.5","ordered_at":5}', "", *lines]) + "\n")
    assert count_refused("json-lines", path) == (
        RefusedReason(
            "wrong_type:ordered_at",
            2_000,
            'expected timestamp in epoch milliseconds, found "yesterday at 0"',
            '{"id":"a","amount":1,"ordered_at":"yesterday at 0"}',
            f"{path}:4",
        ),
        RefusedReason(
            "wrong_type:amount",
            1,
            'expected double, found "12.5"',
            '{"id":"a","amount":"12.5","ordered_at":5}',
            f"{path}:2",
        ),
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_row_of_csv_is_found_behind_quoted_line_breaks(tmp_path: Path, line_end: str):
    path = tmp_path / "orders.csv"
    rows = ["id,amount,ordered_at", f'"two{line_end}lines",1,5', "b,much,5"]
    path.write_text(line_end.join(rows) + line_end, newline="")
    (refused,) = count_refused("csv", path)
    assert (refused.reason, refused.position) == ("wrong_type:amount", f"{path}:4")


def test_a_record_with_personal_fields_is_not_shown(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    path.write_text('{"id":"Ada","amount":"Lovelace","ordered_at":1}\n')
    fields = tuple(replace(field, personal=True) for field in ORDERS.fields)
    (refused,) = count_refused("json-lines", path, replace(ORDERS, topic="people", fields=fields))
    assert (refused.detail, refused.value) == ("expected double, found a string of 8 characters", "")


def test_reasons_without_end_are_counted_together(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    path.write_text("".join(f'{{"id":"a","amount":1,"ordered_at":1,"f{n}":1}}\n' for n in range(200)))
    refused = count_refused("json-lines", path, replace(ORDERS, unknown_fields="refuse"))
    assert refused[0].reason == OTHER_REASONS
    assert (refused[0].records, len(refused)) == (200 - MAX_REASONS, MAX_REASONS + 1)
