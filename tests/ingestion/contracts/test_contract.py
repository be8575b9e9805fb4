import dataclasses

import pytest

from penstock.ingestion.contracts import (
    ContractField,
    TopicLayout,
    describe,
    load_contract,
    parse_contract,
)
from penstock.ingestion.errors import ContractError

SENSORS_CONTRACT = load_contract("sensors")


def test_an_inconsistent_contract_is_refused_with_the_field():
    for changes, word in (
        ({"key": "gadget"}, "gadget"),
        ({"event_time": "device"}, "timestamp"),
        ({"id": "humidity"}, "required"),
        ({"fields": (*SENSORS_CONTRACT.fields, SENSORS_CONTRACT.fields[0])}, "twice"),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("many", "array<int>", "M.")), "key": "many"},
            "array 'many' as key",
        ),
        (
            {"fields": (ContractField("1a", "int", "A."),), "key": None, "event_time": None, "id": None},
            "invalid field name '1a'",
        ),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("class", "int", "A."))},
            "invalid field name 'class'",
        ),
        (
            {"fields": (*SENSORS_CONTRACT.fields, ContractField("a b", "int", "A."))},
            "invalid field name 'a b'",
        ),
        ({"topic": "a b"}, "invalid topic name"),
        ({"topic": ".."}, "invalid topic name"),
        ({"topic": "a" * 240}, "240 characters"),
        ({"max_bytes": -5}, "max_bytes -5"),
        ({"max_bytes": 40_000_000}, "max_bytes 40000000"),
        ({"layout": TopicLayout(partitions=0)}, "in 'layout' 0 partitions. Use 1 or more"),
        ({"layout": TopicLayout(partitions=-1)}, "-1 partitions"),
        ({"environments": (("production", TopicLayout(replicas=0)),)}, "in 'production' 0 replicas"),
        ({"layout": TopicLayout(retention_ms=-7)}, "-7 ms"),
        ({"layout": TopicLayout(compacted=True), "key": None}, "no key"),
    ):
        with pytest.raises(ContractError, match=word):
            dataclasses.replace(SENSORS_CONTRACT, **changes)


def test_an_unknown_key_in_a_contract_is_refused_with_the_nearest_match():
    with pytest.raises(ContractError, match=r"unknown key 'partition'"):
        parse_contract({"topic": "t", "fields": [{"name": "a", "type": "long", "doc": ""}], "partition": 3})


def test_an_environment_overrides_the_layout_field_by_field():
    assert SENSORS_CONTRACT.layout_for("production").partitions == 12
    assert SENSORS_CONTRACT.layout_for("production").retention_ms == SENSORS_CONTRACT.layout.retention_ms
    assert SENSORS_CONTRACT.layout_for("elsewhere") == SENSORS_CONTRACT.layout


def test_a_contract_names_its_owner_and_its_personal_data():
    document = {"topic": "t", "owner": "team:web", "fields": [
        {"name": "user", "type": "string", "doc": "Who.", "personal": True},
        {"name": "page", "type": "string", "doc": "What."},
    ]}  # fmt: skip
    contract = parse_contract(document)
    assert [(item.name, item.personal) for item in contract.fields] == [("user", True), ("page", False)]
    page = describe.describe_contract(contract)
    assert "owner: team:web" in page
    assert "| `user` | string | yes | Who. *Personal.* |" in page
    with pytest.raises(ContractError, match=r"owner 'somebody'\. Use an email address or a team"):
        parse_contract({**document, "owner": "somebody"})
