"""Checks that report the audit of each stream."""

from dagster import AssetCheckKey, AssetCheckSeverity, AssetSpec, Definitions
from pyarrow import ArrowInvalid

from penstock.engine.errors import DefinitionError
from penstock.platform.definitions.asset_keys import stream_key
from penstock.platform.definitions.streams.audit_checks import (
    ACCOUNTED_FOR_CHECK,
    AUDIT_JOB,
    build_audit_definitions,
)
from penstock.quality.audit.verdict import (
    AuditDifference,
    AuditReport,
    AuditVerdict,
    judge_differences,
    unproven_outcome,
)
from penstock.quality.errors import NoBatchesYetError

FAILED_VERDICT = judge_differences(
    [AuditDifference("sensors/1 offset 150", "read by | no batch")], ""
).as_verdict("offset ranges")
PASSED_VERDICT = AuditVerdict("files", "right", "7 tables name what is there")


def evaluate_checks(instance, **reports: AuditReport):
    def audit(stream: str) -> AuditReport:
        if stream == "broken":
            raise DefinitionError("broken", "it does not exist", "Create it")
        if stream == "damaged":
            raise ArrowInvalid("a file is not what it was")
        if stream not in reports:
            raise NoBatchesYetError(f"{stream} has committed no batch")
        return reports[stream]

    names = ["broken", "damaged", "minute", "hour", "silent"]
    streams = Definitions(assets=[AssetSpec(stream_key(name)) for name in names])
    defs = Definitions.merge(streams, build_audit_definitions(names, audit))
    result = defs.resolve_job_def(AUDIT_JOB).execute_in_process(instance=instance)
    assert result.success
    return {evaluation.asset_key.path[-1]: evaluation for evaluation in result.get_asset_check_evaluations()}


def test_the_check_of_a_stream_shows_the_first_difference(instance) -> None:
    reports = {
        "minute": AuditReport("minute", 7, (PASSED_VERDICT, FAILED_VERDICT)),
        "hour": AuditReport(
            "hour", 9, (PASSED_VERDICT, unproven_outcome("there is none").as_verdict("archive sensors"))
        ),
    }
    evaluations = evaluate_checks(instance, **reports)
    assert {name: evaluation.passed for name, evaluation in evaluations.items()} == {
        "broken": False,
        "damaged": False,
        "minute": False,
        "hour": True,
    }, "nothing is shown as passed for a stream that has not written anything"
    assert evaluations["minute"].severity is AssetCheckSeverity.ERROR
    assert evaluations["minute"].description == "first difference at sensors/1 offset 150: read by | no batch"
    assert evaluations["hour"].metadata["unproven"].text == "archive sensors"
    assert (
        "| offset ranges | failed | sensors/1 offset 150: read by \\| no batch |"
        in evaluations["minute"].metadata["verdicts"].md_str
    )
    assert evaluations["broken"].description == "could not run: broken: it does not exist. Create it"
    assert evaluations["damaged"].description == "could not run: a file is not what it was"


def test_the_audit_runs_every_night() -> None:
    streams = Definitions(assets=[AssetSpec(stream_key("minute"))])
    defs = Definitions.merge(
        streams, build_audit_definitions(["minute"], lambda _: AuditReport("minute", 0, ()))
    )
    (schedule,) = defs.schedules or []
    assert (schedule.name, schedule.cron_schedule, schedule.job_name) == (
        "nightly_audit",
        "0 3 * * *",
        AUDIT_JOB,
    )
    assert (
        AssetCheckKey(stream_key("minute"), ACCOUNTED_FOR_CHECK)
        in defs.resolve_asset_graph().asset_check_keys
    )
