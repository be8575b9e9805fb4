"""Audits in Dagster: one check for each stream, run by a nightly schedule or on request."""

from collections.abc import Callable, Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    Definitions,
    MetadataValue,
)

from penstock.platform.definitions.asset_keys import SPARK_POOL, stream_key
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import build_checks, build_scheduled_checks
from penstock.platform.definitions.unchecked_assets import build_unchecked_result
from penstock.platform.services.audit import audit_stream
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.verdict import AuditReport, VerdictState
from penstock.quality.errors import NoBatchesYetError

ACCOUNTED_FOR_CHECK = "accounted_for"
AUDIT_JOB = "audit_streams"
NIGHTLY_CRON = "0 3 * * *"
AuditRunner = Callable[[str], AuditReport]


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the audit checks of every pipeline."""
    return build_audit_definitions(
        context.pipeline_names,
        lambda stream: audit_stream(context.settings, stream, Sample(), lambda _: None),
    )


def build_audit_definitions(streams: Sequence[str], run_audit: AuditRunner) -> Definitions:
    """Build the audit checks, the job that runs all of them, and its schedule."""
    specs = [
        AssetCheckSpec(
            ACCOUNTED_FOR_CHECK,
            asset=stream_key(stream),
            description="Every record is accounted for, and the tables match the records: "
            f"`penstock audit {stream}`.",
        )
        for stream in streams
    ]
    checks = build_checks(
        "audits", specs, lambda context, key: _audit_result(context, key, run_audit), SPARK_POOL
    )
    return build_scheduled_checks(
        [checks],
        job=AUDIT_JOB,
        description="Audit every stream: each record is accounted for, and each result matches its records.",
        schedule="nightly_audit",
        cron=NIGHTLY_CRON,
    )


def _audit_result(
    context: AssetCheckExecutionContext, key: AssetCheckKey, run_audit: AuditRunner
) -> AssetCheckResult | None:
    try:
        report = run_audit(key.asset_key.path[-1])
    except NoBatchesYetError as error:
        return build_unchecked_result(context.instance, key, str(error))
    unproven_checks = [verdict.check for verdict in report.verdicts if verdict.state == VerdictState.UNPROVEN]
    return AssetCheckResult(
        passed=report.passed,
        asset_key=key.asset_key,
        check_name=ACCOUNTED_FOR_CHECK,
        severity=AssetCheckSeverity.ERROR,
        description=None
        if report.first_difference is None
        else f"first difference at {report.first_difference}",
        metadata={
            "batch": report.upto,
            "unproven": ", ".join(unproven_checks) or "none",
            "verdicts": MetadataValue.md(_format_verdicts(report)),
        },
    )


def _format_verdicts(report: AuditReport) -> str:
    lines = [
        f"| {verdict.check} | {verdict.state} | {verdict.summary.replace('|', chr(92) + '|')} |"
        for verdict in report.verdicts
    ]
    return "\n".join(["| check | | |", "|---|---|---|", *lines])
