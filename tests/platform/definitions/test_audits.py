"""What Dagster is told of an audit."""

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
    unproven_verdict,
)
from penstock.quality.errors import NoBatchesYetError

WRONG = judge_differences(
    "offset ranges", [AuditDifference("sensors/1 offset 150", "read by | no batch")], ""
)
RIGHT = AuditVerdict("files", "right", "7 tables name what is there")


def evaluations(instance, **reports: AuditReport):
    def audit(stream: str) -> AuditReport:
        if stream == "broken":
            raise DefinitionError("broken", "nobody wrote it", "Mend it")
        if stream == "damaged":
            raise ArrowInvalid("a file is not what it was")
        if stream not in reports:
            raise NoBatchesYetError(f"{stream} has committed no batch")
        return reports[stream]

    names = ["broken", "damaged", "minute", "hour", "silent"]
    streams = Definitions(assets=[AssetSpec(stream_key(name)) for name in names])
    defs = Definitions.merge(streams, build_audit_definitions(names, audit))
    done = defs.resolve_job_def(AUDIT_JOB).execute_in_process(instance=instance)
    assert done.success
    return {one.asset_key.path[-1]: one for one in done.get_asset_check_evaluations()}


def test_every_stream_has_a_check_that_tells_the_first_place(instance) -> None:
    reports = {
        "minute": AuditReport("minute", 7, (RIGHT, WRONG)),
        "hour": AuditReport("hour", 9, (RIGHT, unproven_verdict("archive sensors", "there is none"))),
    }
    found = evaluations(instance, **reports)
    assert {name: one.passed for name, one in found.items()} == {
        "broken": False,
        "damaged": False,
        "minute": False,
        "hour": True,
        "silent": True,
    }
    assert found["minute"].severity is AssetCheckSeverity.ERROR
    assert found["minute"].description == "first difference at sensors/1 offset 150: read by | no batch"
    assert found["hour"].metadata["unproven"].text == "archive sensors"
    assert (
        "| offset ranges | failed | sensors/1 offset 150: read by \\| no batch |"
        in found["minute"].metadata["verdicts"].md_str
    )
    assert found["broken"].description == "could not run: broken: nobody wrote it. Mend it"
    assert found["damaged"].description == "could not run: a file is not what it was"
    assert found["silent"].metadata["state"].text == "silent has committed no batch"


def test_the_audit_is_made_every_night() -> None:
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
