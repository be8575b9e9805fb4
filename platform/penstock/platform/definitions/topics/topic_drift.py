"""Checks that the broker's topics match their contracts; a sensor reports changes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import IngestionError
from penstock.ingestion.topics import TopicChange, TopicPlan, plan_cluster_changes
from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import build_joint_checks, to_evaluation

DRIFT_CHECK = "drift"
SENSOR_INTERVAL_S = 300
BROKER_TIMEOUT_S = 10.0
"""How long the drift sensor waits for the broker; Dagster stops a tick after one minute."""

TopicPlanner = Callable[[Sequence[Contract]], TopicPlan]


@dataclass(frozen=True)
class TopicDrift:
    """The differences of each topic as sentences; `broker_error` says why the broker could not be queried."""

    by_topic: Mapping[str, Sequence[str]]
    broker_error: str = ""


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the checks of every topic with a valid contract, and their sensor."""
    kafka = context.settings.kafka

    def plan_topics(contracts: Sequence[Contract]) -> TopicPlan:
        return plan_cluster_changes(
            kafka.bootstrap_servers,
            contracts,
            kafka.layout,
            client_settings=kafka.client_config("topics"),
            timeout_s=BROKER_TIMEOUT_S,
        )

    return build_topic_definitions(context.contract_catalog.contracts, plan_topics)


def build_topic_definitions(contracts: Sequence[Contract], plan_topics: TopicPlanner) -> Definitions:
    """Build a check for each topic and the sensor that reports it; `plan_topics` compares with the broker."""
    return Definitions(
        asset_checks=[_build_checks(contracts, plan_topics)], sensors=[_build_sensor(contracts, plan_topics)]
    )


def detect_drift(contracts: Sequence[Contract], plan_topics: TopicPlanner) -> TopicDrift:
    """Compare every topic and its dead-letter topic with its contract."""
    try:
        changes = plan_topics(contracts).changes
    except IngestionError as error:
        return TopicDrift({contract.topic: () for contract in contracts}, str(error))
    names_by_topic = {contract.topic: (contract.topic, contract.dead_letter_topic) for contract in contracts}
    return TopicDrift(
        {
            topic: [_describe_change(change) for change in changes if change.topic in names]
            for topic, names in names_by_topic.items()
        }
    )


def _build_checks(contracts: Sequence[Contract], plan_topics: TopicPlanner) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            DRIFT_CHECK, asset=topic_key(contract.topic), description="The topic matches its contract."
        )
        for contract in contracts
    ]

    def run_selected(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        drift = detect_drift(contracts, plan_topics)
        for key in context.selected_asset_check_keys:
            yield _drift_result(drift, key.asset_key.path[-1])

    return build_joint_checks("topics", specs, run_selected)


def _build_sensor(contracts: Sequence[Contract], plan_topics: TopicPlanner) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        previous: dict[str, object] = json.loads(context.cursor or "{}")
        drift = detect_drift(contracts, plan_topics)
        current = {topic: _drift_metadata(drift, topic) for topic in drift.by_topic}
        changed = [topic for topic in current if current[topic] != previous.get(topic)]
        if not changed:
            return SkipReason("No topic changed since the last report")
        events = [to_evaluation(_drift_result(drift, topic)) for topic in changed]
        return SensorResult(asset_events=events, cursor=json.dumps(current))

    return SensorDefinition(
        name="topic_drift",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Compares the broker's topics with their contracts, and reports changes.",
    )


def _drift_result(drift: TopicDrift, topic: str) -> AssetCheckResult:
    return AssetCheckResult(
        passed=not drift.broker_error and not drift.by_topic[topic],
        asset_key=topic_key(topic),
        check_name=DRIFT_CHECK,
        severity=AssetCheckSeverity.WARN if drift.broker_error else AssetCheckSeverity.ERROR,
        metadata=_drift_metadata(drift, topic),
    )


def _drift_metadata(drift: TopicDrift, topic: str) -> dict[str, str]:
    if drift.broker_error:
        return {"state": drift.broker_error}
    return {"state": "; ".join(drift.by_topic[topic]) or "matches its contract"}


def _describe_change(change: TopicChange) -> str:
    differences = ", ".join(
        f"{name} is {actual} and should be {declared}" for name, actual, declared in change.differences
    )
    return f"{change.topic}: {differences or f'to {change.action}'}"
