"""Columns and owner of a topic or table, for the page of expectation suites."""

from penstock.engine.plan.stages import Plan
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.errors import ContractError
from penstock.platform.lineage.result_columns import describe_result_columns
from penstock.platform.settings import Settings
from penstock.quality.expectations.report_page import ColumnDescription
from penstock.quality.expectations.suite import Suite


def describe_columns(suite: Suite, plan: Plan | None) -> list[ColumnDescription]:
    """Describe the columns of a suite's topic or table; `plan` writes the table. Empty if no plan does."""
    if suite.topic is not None:
        contract = _find_contract(suite.topic)
        fields = () if contract is None else contract.fields
        return [
            ColumnDescription(column.name, column.type, column.doc, is_personal=column.personal)
            for column in fields
        ]
    if plan is None:
        return []
    stage_and_sink_by_path = {sink.path: (stage, sink) for stage in plan.stages for sink in stage.sinks}
    return [
        ColumnDescription(
            column.name,
            column.type,
            column.description,
            [f"{topic}.{field}" for topic, field in sorted(column.origin.source_fields)],
            column.is_personal,
        )
        for column in describe_result_columns(
            plan, *stage_and_sink_by_path[suite.subject], list_personal_fields()
        )
    ]


def find_owner(settings: Settings, suite: Suite) -> str:
    """Return the owner in the topic's contract, otherwise the owner of the platform."""
    contract = None if suite.topic is None else _find_contract(suite.topic)
    return settings.dagster.owner if contract is None else contract.owner or settings.dagster.owner


def list_personal_fields() -> set[tuple[str, str]]:
    """List the personal fields of all topics."""
    contracts = [
        loaded_contract
        for name in list_contract_names()
        if (loaded_contract := _find_contract(name)) is not None
    ]
    return {
        (contract.topic, field.name) for contract in contracts for field in contract.fields if field.personal
    }


def _find_contract(topic: str) -> Contract | None:
    """Return the contract of a topic; None if it is invalid, which its own check reports."""
    try:
        return load_contract(topic)
    except ContractError:
        return None
