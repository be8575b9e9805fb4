"""Audits in Dagster: a check of each stream, made on a schedule and whenever somebody asks for it."""

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

from penstock.platform.definitions.names import SPARK, stream_key
from penstock.platform.definitions.scheduled import guarded, scheduled_checks, stays
from penstock.quality.audit.verdict import Report
from penstock.quality.errors import NothingYetError

CHECK = "accounted_for"
JOB = "audit_streams"
EVERY_NIGHT = "0 3 * * *"
Audit = Callable[[str], Report]


def audit_definitions(streams: Sequence[str], audit: Audit) -> Definitions:
    """A check of each stream, the job that makes all of them, and when it runs."""
    return scheduled_checks(
        [_checks(streams, audit)],
        job=JOB,
        says="Audit every stream: each record accounted for, each result what its records give.",
        schedule="nightly_audit",
        cron=EVERY_NIGHT,
    )


def _checks(streams: Sequence[str], audit: Audit) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            CHECK,
            asset=stream_key(stream),
            description="Every record is accounted for, and the tables hold what the records give: "
            f"`penstock audit {stream}`.",
        )
        for stream in streams
    ]

    @multi_asset_check(name="audits", specs=specs, can_subset=True, pool=SPARK)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            yield guarded(key, partial(_result, key, audit))

    return check


def _result(key: AssetCheckKey, audit: Audit) -> AssetCheckResult:
    try:
        report = audit(key.asset_key.path[-1])
    except NothingYetError as nothing:
        return AssetCheckResult(
            passed=True, asset_key=key.asset_key, check_name=CHECK, metadata={"state": str(nothing)}
        )
    unproven = [verdict.check for verdict in report.verdicts if verdict.state == "unproven"]
    return AssetCheckResult(
        passed=report.right,
        asset_key=key.asset_key,
        check_name=CHECK,
        severity=AssetCheckSeverity.ERROR,
        description=None if report.first is None else f"the first place is {report.first}",
        metadata={
            "batch": report.upto,
            "unproven": ", ".join(unproven) or "nothing",
            "verdicts": MetadataValue.md(_table(report)),
        },
    )


def _table(report: Report) -> str:
    lines = [
        f"| {one.check} | {one.state} | {one.said.replace('|', chr(92) + '|')} |" for one in report.verdicts
    ]
    return "\n".join(["| check | | |", "|---|---|---|", *lines])
