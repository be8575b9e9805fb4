"""Quarantines in Dagster: a check of each topic that says how many of its records wait for a decision, and why."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    Definitions,
    MetadataValue,
    multi_asset_check,
)

from penstock.platform.definitions.names import topic_key
from penstock.platform.definitions.scheduled import guarded, scheduled_checks, stays
from penstock.quality.quarantine.standing import Standing, counts

CHECK = "nothing_held"
JOB = "look_into_quarantines"
EVERY_HOUR = "10 * * * *"
EXAMPLES = 5
Look = Callable[[str], Sequence[Standing]]


def quarantine_definitions(topics: Sequence[str], look: Look) -> Definitions:
    """A check of each topic's quarantine, made every hour."""
    return scheduled_checks(
        [_checks(topics, look)],
        job=JOB,
        says="Count the records that were found to be no good and wait for a decision.",
        schedule="hourly_quarantines",
        cron=EVERY_HOUR,
    )


def _checks(topics: Sequence[str], look: Look) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            CHECK,
            asset=topic_key(topic),
            description=f"No record waits for a decision: `penstock quarantine list {topic} --state held`.",
        )
        for topic in topics
    ]

    @multi_asset_check(name="quarantines", specs=specs, can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            yield guarded(key, partial(_none_waits, key, look))

    return check


def _none_waits(key: AssetCheckKey, look: Look) -> AssetCheckResult:
    standing = look(key.asset_key.path[-1])
    held = [one.record for one in standing if one.state == "held"]
    return AssetCheckResult(
        passed=not held,
        asset_key=key.asset_key,
        check_name=CHECK,
        severity=AssetCheckSeverity.WARN,
        metadata={
            **{str(state): count for state, count in counts(standing).items()},
            "reasons": MetadataValue.json(dict(Counter(record.reason for record in held))),
            "examples": MetadataValue.json([f"{record.place} {record.reason}" for record in held[:EXAMPLES]]),
        },
    )
