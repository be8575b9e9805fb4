"""What the page of expectations says of a topic or a table besides: its columns, and whom to ask."""

from penstock.ingestion.contracts import contract_names, load_contract
from penstock.ingestion.contracts.model import Contract
from penstock.ingestion.errors import ContractError
from penstock.pipelines.plan import Plan
from penstock.pipelines.tables.places import result_of
from penstock.platform.columns import described
from penstock.platform.settings import Settings
from penstock.quality.expectations.page import ColumnShown
from penstock.quality.expectations.suite import Suite


def columns_of(suite: Suite, plan: Plan | None) -> list[ColumnShown]:
    """The columns of what a suite is about, which `plan` writes; none where nobody does."""
    if suite.of_topic is not None:
        contract = _contract(suite.of_topic)
        fields = () if contract is None else contract.fields
        return [ColumnShown(each.name, each.type, each.doc, personal=each.personal) for each in fields]
    if plan is None:
        return []
    places = {result_of(sink): (stage, sink) for stage in plan.stages for sink in stage.sinks}
    return [
        ColumnShown(
            each.name,
            each.type,
            each.said,
            [f"{topic}.{field}" for topic, field in sorted(each.origin.made)],
            each.personal,
        )
        for each in described(plan, *places[suite.about], personal_fields())
    ]


def owner_of(settings: Settings, suite: Suite) -> str:
    """Whom to ask: the owner that the topic's contract names, or that of the platform."""
    contract = None if suite.of_topic is None else _contract(suite.of_topic)
    return settings.dagster.owner if contract is None else contract.owner or settings.dagster.owner


def personal_fields() -> set[tuple[str, str]]:
    """The fields of topics, each with its topic, that tell of a person."""
    contracts = [found for name in contract_names() if (found := _contract(name)) is not None]
    return {(each.topic, field.name) for each in contracts for field in each.fields if field.personal}


def _contract(topic: str) -> Contract | None:
    """The contract of a topic; None where it cannot be used, which its own check says."""
    try:
        return load_contract(topic)
    except ContractError:
        return None
