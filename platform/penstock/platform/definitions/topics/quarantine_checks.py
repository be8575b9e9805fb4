"""Quarantines in Dagster: a check for each topic with the number of pending records and their reasons."""

from collections import Counter
from collections.abc import Callable, Sequence

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    Definitions,
    MetadataValue,
)

from penstock.ingestion.contracts import list_contract_names
from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import build_checks, build_scheduled_checks
from penstock.platform.services.quarantine import TopicQuarantine
from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.record_status import QuarantineStatus, count_states

QUARANTINE_EMPTY_CHECK = "quarantine_empty"
QUARANTINE_JOB = "check_quarantines"
HOURLY_CRON = "10 * * * *"
MAX_EXAMPLES = 5
StatusReader = Callable[[str], Sequence[QuarantineStatus]]


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the quarantine checks of every topic, including those with an invalid contract."""
    return build_quarantine_definitions(
        list_contract_names(), lambda topic: TopicQuarantine(context.settings, topic).list_statuses()
    )


def build_quarantine_definitions(topics: Sequence[str], read_statuses: StatusReader) -> Definitions:
    """Build an hourly check for each topic's quarantine."""
    specs = [
        AssetCheckSpec(
            QUARANTINE_EMPTY_CHECK,
            asset=topic_key(topic),
            description="No quarantined record and no dead letter waits for a decision: "
            f"`penstock quarantine list {topic} --state pending`.",
        )
        for topic in topics
    ]
    checks = build_checks("quarantines", specs, lambda _context, key: _quarantine_result(key, read_statuses))
    return build_scheduled_checks(
        [checks],
        job=QUARANTINE_JOB,
        description="Count the quarantined records that wait for a decision.",
        schedule="hourly_quarantines",
        cron=HOURLY_CRON,
    )


def _quarantine_result(key: AssetCheckKey, read_statuses: StatusReader) -> AssetCheckResult:
    statuses = read_statuses(key.asset_key.path[-1])
    pending_records = [status.record for status in statuses if status.state == QuarantineState.PENDING]
    return AssetCheckResult(
        passed=not pending_records,
        asset_key=key.asset_key,
        check_name=QUARANTINE_EMPTY_CHECK,
        severity=AssetCheckSeverity.WARN,
        metadata={
            **{str(state): count for state, count in count_states(statuses).items()},
            "pending_dead_letters": sum(record.position.is_dead_letter for record in pending_records),
            "reasons": MetadataValue.json(dict(Counter(record.reason for record in pending_records))),
            "examples": MetadataValue.json(
                [f"{record.position} {record.reason}" for record in pending_records[:MAX_EXAMPLES]]
            ),
        },
    )
