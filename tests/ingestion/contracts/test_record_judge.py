"""The judge of records: reasons with field and value, and the value of a record."""

import json
from typing import get_args

import msgspec
import pytest

from penstock.ingestion.contracts import Contract, ContractField, json_codec
from penstock.ingestion.contracts.contract_modes import UnknownFieldPolicy
from penstock.ingestion.contracts.record_judge import RecordJudge
from penstock.ingestion.contracts.record_rules import to_record_rules
from penstock.ingestion.errors import ContractError, InvalidRecordError

FIELDS = (
    ContractField("id", "string", ""),
    ContractField("country", "string", ""),
    ContractField("amount", "double", "", required=False),
    ContractField("count", "int", "", required=False),
    ContractField("prices", "array<double>", "", required=False),
    ContractField("email", "string", "", required=False, personal=True),
    ContractField("at", "timestamp", ""),
)
VALID_TEXT = '"id":"1","country":"DE","at":5'


def make_judge(policy: UnknownFieldPolicy = "ignore") -> RecordJudge:
    contract = Contract("orders", "", FIELDS, event_time="at", unknown_fields=policy)
    return RecordJudge(to_record_rules(contract))


def explain(value: bytes | str, policy: UnknownFieldPolicy = "ignore") -> str:
    with pytest.raises(InvalidRecordError) as caught:
        make_judge(policy).decode(value.encode() if isinstance(value, str) else value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('{%s,"amount":"12.5"}', 'wrong_type:amount (expected double, found "12.5")'),
        ('{%s,"count":1.5}', "wrong_type:count (expected int, found 1.5)"),
        ('{%s,"count":1.0}', "wrong_type:count (expected int, found 1.0)"),
        (
            '{%s,"count":3000000000}',
            "out_of_range:count (expected int of at most 2147483647, found 3000000000)",
        ),
        ('{%s,"amount":1e999}', "out_of_range:amount (expected double, found 1e999)"),
        ('{%s,"amount":NaN}', "malformed (invalid character (byte 41))"),
        ('{%s,"prices":[1,null]}', "wrong_type:prices[] (prices[1]: expected double, found null)"),
        ('{%s,"prices":{"a": 1}}', 'wrong_type:prices (expected array<double>, found {"a": 1})'),
        ('{%s,"email":12}', "wrong_type:email (expected string, found a number)"),
        ('{%s,"email":["a"]}', "wrong_type:email (expected string, found an array)"),
        ('{"id":7,"country":"DE","at":5}', "wrong_type:id (expected string, found 7)"),
        ('{"id":"1","at":5}', "missing_field:country (the record has no such field)"),
        ('{"id":"1","country":null,"at":5}', "missing_field:country (found null)"),
        (
            '{"id":"1","contry":"DE","at":5}',
            "missing_field:country (the record has no such field. Did you mean 'contry'?)",
        ),
        ('{"id":"1","country":"DE"}', "missing_field:at (the record has no such field)"),
        (
            '{"id":"1","country":"DE","at":999999999999999999}',
            "event_time_out_of_range (expected timestamp in epoch milliseconds of at most 253402300799999, found ",
        ),
        (
            '{"id":"1","country":"D","at":"%s"}' % ("x" * 80),
            "wrong_type:at (expected timestamp in epoch milliseconds, found ",
        ),
        ("not json", "malformed (invalid character (byte 4))"),
        ("[1]", "malformed (expected object, found array)"),
        ("", "malformed (Input data was truncated)"),
        ("{%s} x", "malformed (trailing characters (byte 34))"),
        ("{'id':'1'}", "malformed (object keys must be strings (byte 1))"),
        ('{%s,"prices":' + "[" * 100_000, "nested_too_deeply (arrays or objects are nested too deeply)"),
    ],
)
def test_a_reason_names_field_and_value(record: str, problem: str):
    assert explain(record.replace("%s", VALID_TEXT)).startswith(problem)


def test_invalid_utf8_names_its_field():
    assert explain(b'{"id":"a\xff","country":"DE","at":1}') == (
        "invalid_utf8:id (byte 0xff at position 1 of the text: invalid start byte)"
    )


def test_the_first_field_of_the_contract_gives_the_reason_in_any_order_of_members():
    members = ['"at":"x"', '"amount":"x"', '"id":1', '"country":null']
    reasons = {explain("{" + ",".join(members[turn:] + members[:turn]) + "}") for turn in range(4)}
    assert reasons == {"wrong_type:id (expected string, found 1)"}


def test_the_last_of_equal_members_counts():
    record = '{"id":1,"id":"1","country":"DE","at":"x","at":5}'
    assert msgspec.to_builtins(make_judge().decode(record.encode())) == {"id": "1", "country": "DE", "at": 5}
    assert explain('{"id":"1","country":"DE","at":5,"at":"x"}') == (
        'wrong_type:at (expected timestamp in epoch milliseconds, found "x")'
    )


def test_a_detail_has_no_personal_value():
    text = explain(f'{{{VALID_TEXT},"count":"x","email":"ada@example.com"}}')
    assert "ada" not in text
    contract = Contract("t", "", (ContractField("age", "int", "", personal=True),))
    with pytest.raises(InvalidRecordError) as caught:
        json_codec(contract).decode(b'{"age":"ada@example.com"}')
    assert str(caught.value) == "wrong_type:age (expected int, found a string of 15 characters)"


@pytest.mark.parametrize("policy", get_args(UnknownFieldPolicy))
def test_unknown_fields_follow_the_policy(policy: UnknownFieldPolicy):
    record = f'{{{VALID_TEXT},"coupon":"X1","tags":[1, 2]}}'
    if policy == "refuse":
        assert (
            explain(record, policy)
            == "unknown_field:coupon (the contract has no such field. Did you mean 'count'?)"
        )
        return
    judged = json.loads(make_judge(policy).to_canonical_json(record.encode()))
    kept = {"unknown_fields": '{"coupon":"X1","tags":[1, 2]}'} if policy == "keep" else {}
    assert judged == {"id": "1", "country": "DE", "at": 5, **kept}


def test_unknown_fields_have_no_column_in_avro_and_none_of_the_contract():
    with pytest.raises(ContractError, match="avro cannot hold"):
        Contract("t", "", FIELDS, encoding="avro", unknown_fields="keep")
    fields = (*FIELDS, ContractField("unknown_fields", "string", ""))
    with pytest.raises(ContractError, match="Rename the field"):
        Contract("t", "", fields, unknown_fields="keep")


def test_rows_have_the_reasons_of_json():
    judge = make_judge("refuse")
    rows: list[tuple[dict[str, object], str]] = [
        ({"id": "1", "country": "DE", "at": 5, "count": "x"}, "wrong_type:count"),
        ({"id": "1", "country": "DE", "at": 5, "count": 2**40}, "out_of_range:count"),
        ({"id": "1", "at": 5}, "missing_field:country"),
        ({"id": "1", "country": None, "at": 5}, "missing_field:country"),
        ({"id": "1", "country": "DE", "at": 5, "x": 1}, "unknown_field:x"),
    ]
    for row, reason in rows:
        with pytest.raises(InvalidRecordError) as in_row:
            judge.convert(row, strict=False)
        with pytest.raises(InvalidRecordError) as in_json:
            judge.decode(json.dumps(row).encode())
        assert in_row.value.reason == in_json.value.reason == reason
