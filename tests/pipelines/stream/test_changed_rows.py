"""Pipelines over events of changed rows: what the plan holds, what it refuses, and how it is explained."""

from dataclasses import replace

import pytest

from penstock.engine.errors import DefinitionError
from penstock.engine.explain.logical_plan import source_node
from penstock.engine.plan.codec import contract_version, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.parse.source_rules import build_record_rules
from penstock.engine.spark.physical_plan import Parallelism, describe_read
from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.contracts.record_rules import to_record_rules
from penstock.stream import count, fixed, read

CONTRACT = Contract(
    "shop.orders",
    "",
    (
        ContractField("id", "long", "."),
        ContractField("operation", "string", "."),
        ContractField("changed_at", "timestamp", "."),
    ),
    key="id",
    event_time="changed_at",
    encoding="debezium",
    deletes="keep",
    envelope=(("operation", "op"), ("changed_at", "source.ts_ms")),
)


def build_plan(contract: Contract) -> Plan:
    return read(contract).key("operation").aggregate(n=count()).window(fixed("1 hour")).write("changes").plan


def test_a_stored_plan_has_the_rules_of_the_contract() -> None:
    plan = build_plan(CONTRACT)
    (source,) = plan_from_dict(plan_to_dict(plan)).sources
    assert source == plan.sources[0]
    assert source.origin == TopicOrigin("shop.orders", "debezium", "keep", CONTRACT.envelope)
    rules, expected = build_record_rules(source), to_record_rules(CONTRACT)
    assert rules is not None
    assert (rules.encoding, rules.deletes, rules.envelope) == (
        expected.encoding,
        expected.deletes,
        expected.envelope,
    )


def test_another_policy_of_deletes_is_another_version_of_the_contract() -> None:
    (kept,), (ignored,) = (
        build_plan(contract).sources for contract in (CONTRACT, replace(CONTRACT, deletes="ignore"))
    )
    assert contract_version(kept) != contract_version(ignored)
    assert "with events of deleted rows" in source_node(kept).operation
    assert "without events of deleted rows" in source_node(ignored).operation


def test_the_physical_plan_says_that_records_are_decoded_in_python() -> None:
    (source,) = build_plan(CONTRACT).sources
    assert describe_read(source, Parallelism({}, 1, 1)).operation.endswith("debezium is decoded in Python")


def test_tombstones_of_changed_rows_cannot_be_read() -> None:
    with pytest.raises(DefinitionError, match="Set deletes to keep in the contract"):
        read(CONTRACT, tombstones="gone").key("id").aggregate(n=count()).window(fixed("1 hour")).write(
            "t"
        ).to_plan("t")
