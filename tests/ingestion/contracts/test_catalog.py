"""The catalog of contracts, and its page."""

from pathlib import Path

import pytest

from penstock.ingestion.contracts import (
    describe,
    load_catalog,
    load_contract,
    load_contracts,
    read_contract,
)
from penstock.ingestion.errors import ContractError, ContractNotFoundError


def test_every_shipped_contract_documents_its_fields():
    for contract in load_contracts():
        assert contract.doc
        assert all(field.doc.endswith(".") for field in contract.fields), contract.topic


FIELDS_YAML = "fields: [{name: x, type: long, doc: X.}]"


INVALID_CONTRACTS = [
    ("topic: [", "not valid YAML: expected the node content, but found the end of the file, at line 1"),
    ("just words", "must be a mapping, but is str"),
    (f"topic: a\nsince: 2026-99-99\n{FIELDS_YAML}", "cannot be read: month must be"),
    (f"topic: a\nduration: 10 seconds\n{FIELDS_YAML}", "has an unknown key 'duration'"),
    ("topic: a\nfields: 5", "has fields: 5, which must be a list"),
    ("topic: a\nfields: [x]", "A field must be a mapping"),
    ("topic: a\nfields: [{name: x, doc: X.}]", "Field 'x' has no 'type'"),
    ("topic: a\nfields: [{name: x, type: 5, doc: X.}]", "has type: 5, which must be text"),
    ("topic: a\nfields: [{name: x, type: number, doc: X.}]", "'number' is not a type"),
    (
        f"topic: a\nlayout: {{partitions: many}}\n{FIELDS_YAML}",
        "has partitions: 'many', which must be an integer",
    ),
    (f"topic: a\nlayout: {{settings: 5}}\n{FIELDS_YAML}", "has settings: 5, which must be a mapping"),
    (f"topic: a\nmax_out_of_orderness: 10 parsecs\n{FIELDS_YAML}", "unknown unit 'parsecs'"),
    (f"topic: a\nmax_future_skew: never\n{FIELDS_YAML}", "max_future_skew: 'never' is not a duration"),
    (f"topic: a\nmax_future_skew: 5\n{FIELDS_YAML}", "has max_future_skew: 5, which must be text"),
    (f"topic: a\nencoding: xml\n{FIELDS_YAML}", "an unknown encoding 'xml'. Use one of avro, "),
]


@pytest.mark.parametrize(
    ("text", "problem"), INVALID_CONTRACTS, ids=[problem for _, problem in INVALID_CONTRACTS]
)
def test_an_invalid_file_affects_only_its_own_topic_and_names_the_problem(
    tmp_path: Path, text: str, problem: str
):
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text(f"topic: b\n{FIELDS_YAML}")
    catalog = load_catalog(tmp_path)
    assert [contract.topic for contract in catalog.contracts] == ["b"]
    assert list(catalog.errors_by_topic) == ["a"]
    assert problem in str(catalog.errors_by_topic["a"])
    assert str(tmp_path / "a.yaml") in str(catalog.errors_by_topic["a"])


def test_a_missing_contract_is_reported_with_the_nearest_match():
    with pytest.raises(ContractNotFoundError, match="Did you mean 'sensors'"):
        load_contract("sensor")


def test_a_contract_in_a_file_of_another_name_is_refused(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("topic: b\nfields: [{name: x, type: long, doc: X.}]\n")
    with pytest.raises(ContractError, match=r"b\.yaml"):
        load_contract("a", tmp_path)


def test_the_catalog_page_matches_the_contracts():
    assert describe.CATALOG_PAGE.read_text() == describe.render_page(load_contracts())


@pytest.mark.parametrize(
    ("line", "limit", "fact"),
    [
        ("", None, ""),
        ("max_future_skew: 5 minutes", 300_000, "max future skew: 300 s"),
        ("max_future_skew: 0s", 0, "max future skew: 0 s"),
        ("max_future_skew: unlimited", "unlimited", "max future skew: unlimited"),
    ],
)
def test_a_contract_may_limit_event_times_in_the_future(
    tmp_path: Path, line: str, limit: object, fact: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"topic: a\n{line}\n{FIELDS_YAML}\n", encoding="utf-8")
    contract = read_contract(file)
    assert contract.max_future_skew == limit
    assert fact in describe.describe_contract(contract)
    assert ("max future skew" in describe.describe_contract(contract)) is bool(fact)


def test_all_problems_of_a_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        """topic: a
owner: nobody
retenton: 7 days
fields:
  - {name: x, type: lnog}
  - {name: at, type: timestamp, format: iso, doc: T.}
  - name: address
    type: struct
    doc: A.
    fields:
      - {name: city, type: strng, doc: C.}
      - {name: zip, tpye: int, doc: Z.}
layout: {partitions: 0, replicas: many}
""",
        "utf-8",
    )
    with pytest.raises(ContractError) as error:
        load_contract("a", tmp_path)
    lines = [line.split(": ", 1) for line in str(error.value).splitlines()]
    assert [
        (location.removeprefix(f"{path}:"), text.split(". ")[0].rstrip(".")) for location, text in lines
    ] == [
        ("2", "Contract a has an invalid owner 'nobody'"),
        ("3", "The contract has an unknown key 'retenton'"),
        ("5", "Field 'x' has no 'doc'"),
        ("5", "'lnog' is not a type"),
        ("6", "'iso' is not a format of timestamps"),
        ("11", "'strng' is not a type"),
        ("12", "A field has an unknown key 'tpye'"),
        ("12", "Field 'zip' has no 'type'"),
        ("13", "A layout has replicas: 'many', which must be an integer"),
        ("13", "Contract a has in 'layout' 0 partitions"),
    ]
