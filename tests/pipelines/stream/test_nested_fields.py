"""Members of structs in definitions: the same plan from Python and from YAML."""

import pytest

from penstock.ingestion.contracts import Contract, parse_contract
from penstock.stream import fixed, input_specs, max_, read, sum_
from penstock.stream.yaml_loader.document import from_document

ADDRESS = [
    {"name": "city", "type": "string", "doc": "C."},
    {"name": "zip", "type": "int", "doc": "Z.", "required": False},
]
FIELDS = [
    {"name": "at", "type": "timestamp", "format": "iso8601", "doc": "T."},
    {"name": "amount", "type": "decimal(12, 2)", "doc": "A."},
    {"name": "address", "type": "struct", "fields": ADDRESS, "doc": "A."},
]
DOCUMENT = {
    "read": "orders",
    "steps": [{"filter": "address.zip > 10"}],
    "key": "address.city",
    "aggregate": {"largest": "max(address.zip)", "revenue": "sum(amount)"},
    "window": {"fixed": "1 minute"},
    "write": {"table": "by_city"},
}


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> Contract:
    orders = parse_contract({"topic": "orders", "event_time": "at", "fields": FIELDS})
    monkeypatch.setattr(input_specs, "list_contract_names", lambda: ("orders",))
    monkeypatch.setattr(input_specs, "load_contract", lambda _: orders)
    return orders


def test_a_path_means_the_same_in_yaml_and_in_python(contract: Contract) -> None:
    pipeline = (
        read(contract)
        .filter("address.zip > 10")
        .key("address.city")
        .aggregate(largest=max_("address.zip"), revenue=sum_("amount"))
        .window(fixed("1 minute"))
        .write("by_city")
    )
    plan = from_document(DOCUMENT).plan
    assert plan == pipeline.plan
    members = [column for column in plan.sources[0].columns if column.is_member]
    assert [(column.name, column.type) for column in members] == [
        ("address.city", "STRING"),
        ("address.zip", "INT"),
    ]


def test_a_source_has_no_columns_for_paths_that_no_definition_names(contract: Contract) -> None:
    plan = from_document({**DOCUMENT, "steps": [], "key": "amount", "aggregate": {"n": "count()"}}).plan
    assert [column.name for column in plan.sources[0].columns] == ["at", "amount", "address"]
    assert contract.get_field("address").type == "struct<city: string, zip?: int>"
