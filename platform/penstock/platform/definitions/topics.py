"""Whether the broker's topics are as declared: a check of each topic, told of by a sensor when it changes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetCheckEvaluation,
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
    multi_asset_check,
)

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import IngestionError
from penstock.ingestion.topics import Change, TopicPlan
from penstock.platform.definitions.names import topic_key
from penstock.platform.definitions.scheduled import stays

CHECK = "drift"
EVERY_SECONDS = 300
PlanOf = Callable[[Sequence[Contract]], TopicPlan]


@dataclass(frozen=True)
class Drift:
    """What differs for each topic, as sentences; `away` says why the broker cannot be asked."""

    by_topic: Mapping[str, Sequence[str]]
    away: str = ""


def topic_definitions(contracts: Sequence[Contract], plan: PlanOf) -> Definitions:
    """A check of each topic, and the sensor that makes them; `plan` compares contracts with the broker."""
    return Definitions(asset_checks=[_checks(contracts, plan)], sensors=[_sensor(contracts, plan)])


def found_drift(contracts: Sequence[Contract], plan: PlanOf) -> Drift:
    """Compare every topic, and its dead letters with it."""
    try:
        changes = plan(contracts).changes
    except IngestionError as error:
        return Drift({contract.topic: () for contract in contracts}, str(error))
    named = {contract.topic: (contract.topic, contract.dead_letters) for contract in contracts}
    return Drift(
        {topic: [_sentence(one) for one in changes if one.topic in names] for topic, names in named.items()}
    )


def _checks(contracts: Sequence[Contract], plan: PlanOf) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(CHECK, asset=topic_key(contract.topic), description="Is the topic as declared?")
        for contract in contracts
    ]

    @multi_asset_check(name="topics", specs=specs, can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        drift = found_drift(contracts, plan)
        for key in context.selected_asset_check_keys:
            topic = key.asset_key.path[-1]
            yield AssetCheckResult(
                passed=_passed(drift, topic),
                asset_key=key.asset_key,
                check_name=CHECK,
                severity=_severity(drift),
                metadata=_metadata(drift, topic),
            )

    return check


def _sensor(contracts: Sequence[Contract], plan: PlanOf) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        told: dict[str, object] = json.loads(context.cursor or "{}")
        drift = found_drift(contracts, plan)
        now = {topic: _metadata(drift, topic) for topic in drift.by_topic}
        changed = [topic for topic in now if now[topic] != told.get(topic)]
        if not changed:
            return SkipReason("the topics are as they were when they were last looked at")
        events = [_evaluation(drift, topic) for topic in changed]
        return SensorResult(asset_events=events, cursor=json.dumps(now))

    return SensorDefinition(
        name="topic_drift",
        evaluation_fn=evaluate,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Compares the broker's topics with their contracts, and tells what changed.",
    )


def _evaluation(drift: Drift, topic: str) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=topic_key(topic),
        check_name=CHECK,
        passed=_passed(drift, topic),
        metadata=_metadata(drift, topic),
        severity=_severity(drift),
    )


def _passed(drift: Drift, topic: str) -> bool:
    return not drift.away and not drift.by_topic[topic]


def _severity(drift: Drift) -> AssetCheckSeverity:
    return AssetCheckSeverity.WARN if drift.away else AssetCheckSeverity.ERROR


def _metadata(drift: Drift, topic: str) -> dict[str, str]:
    if drift.away:
        return {"state": drift.away}
    return {"state": "; ".join(drift.by_topic[topic]) or "as declared"}


def _sentence(change: Change) -> str:
    values = ", ".join(
        f"{name} is {before} and should be {after}" for name, before, after in change.differences
    )
    return f"{change.topic}: {values or f'to {change.action}'}"
