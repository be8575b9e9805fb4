"""What Dagster is told of an audit."""

from dagster import AssetCheckKey, AssetCheckSeverity, AssetSpec, Definitions
from pyarrow import ArrowInvalid

from penstock.pipelines.errors import DefinitionError
from penstock.platform.definitions.audits import CHECK, JOB, audit_definitions
from penstock.platform.definitions.names import stream_key
from penstock.quality.audit.verdict import Difference, Report, Verdict, judged, unproven
from penstock.quality.errors import NothingYetError

WRONG = judged("ranges", [Difference("sensors/1 offset 150", "read by | no batch")], "")
RIGHT = Verdict("files", "right", "7 tables name what is there")


def evaluations(instance, **reports: Report):
    def audit(stream: str) -> Report:
        if stream == "broken":
            raise DefinitionError("broken", "nobody wrote it", "Mend it")
        if stream == "damaged":
            raise ArrowInvalid("a file is not what it was")
        if stream not in reports:
            raise NothingYetError(f"{stream} has committed no batch")
        return reports[stream]

    names = ["broken", "damaged", "minute", "hour", "silent"]
    streams = Definitions(assets=[AssetSpec(stream_key(name)) for name in names])
    defs = Definitions.merge(streams, audit_definitions(names, audit))
    done = defs.resolve_job_def(JOB).execute_in_process(instance=instance)
    assert done.success
    return {one.asset_key.path[-1]: one for one in done.get_asset_check_evaluations()}


def test_every_stream_has_a_check_that_tells_the_first_place(instance) -> None:
    reports = {
        "minute": Report("minute", 7, (RIGHT, WRONG)),
        "hour": Report("hour", 9, (RIGHT, unproven("archive sensors", "there is none"))),
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
    assert found["minute"].description == "the first place is sensors/1 offset 150: read by | no batch"
    assert found["hour"].metadata["unproven"].text == "archive sensors"
    assert (
        "| ranges | wrong | sensors/1 offset 150: read by \\| no batch |"
        in found["minute"].metadata["verdicts"].md_str
    )
    assert found["broken"].description == "it could not be made: broken: nobody wrote it. Mend it"
    assert found["damaged"].description == "it could not be made: a file is not what it was"
    assert found["silent"].metadata["state"].text == "silent has committed no batch"


def test_the_audit_is_made_every_night() -> None:
    streams = Definitions(assets=[AssetSpec(stream_key("minute"))])
    defs = Definitions.merge(streams, audit_definitions(["minute"], lambda _: Report("minute", 0, ())))
    (schedule,) = defs.schedules or []
    assert (schedule.name, schedule.cron_schedule, schedule.job_name) == ("nightly_audit", "0 3 * * *", JOB)
    assert AssetCheckKey(stream_key("minute"), CHECK) in defs.resolve_asset_graph().asset_check_keys
