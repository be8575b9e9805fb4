"""What Dagster is told of quarantines."""

from dagster import AssetCheckSeverity, AssetSpec, Definitions
from pyarrow import ArrowInvalid
from tests.quality.quarantine.test_decisions import quarantined_record

from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.definitions.topics.quarantine_checks import (
    QUARANTINE_JOB,
    build_quarantine_definitions,
)
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.record_status import QuarantineStatus, build_statuses


def test_a_quarantine_that_cannot_be_read_fails_its_own_check_only(instance) -> None:
    def look(topic: str) -> list[QuarantineStatus]:
        if topic == "clicks":
            raise ArrowInvalid("a file is not what it was")
        return []

    topics = ("clicks", "sensors")
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(topic_key(topic)) for topic in topics]),
        build_quarantine_definitions(topics, look),
    )
    done = defs.resolve_job_def(QUARANTINE_JOB).execute_in_process(instance=instance)
    found = {one.asset_key.path[-1]: one for one in done.get_asset_check_evaluations()}
    assert {topic: one.passed for topic, one in found.items()} == {"clicks": False, "sensors": True}
    assert found["clicks"].description == "could not run: a file is not what it was"


def test_records_that_wait_for_a_decision_are_counted_by_reason(instance) -> None:
    given_up = QuarantineDecision("discarded", 0, 2, 5)
    standing = build_statuses(
        [quarantined_record(1), quarantined_record(2), quarantined_record(7)], [given_up], {}
    )
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(topic_key(topic)) for topic in ("sensors", "clicks")]),
        build_quarantine_definitions(
            ["sensors", "clicks"], lambda topic: standing if topic == "sensors" else []
        ),
    )
    done = defs.resolve_job_def(QUARANTINE_JOB).execute_in_process(instance=instance)
    found = {one.asset_key.path[-1]: one for one in done.get_asset_check_evaluations()}
    assert {topic: one.passed for topic, one in found.items()} == {"sensors": False, "clicks": True}
    told = found["sensors"].metadata
    assert found["sensors"].severity is AssetCheckSeverity.WARN
    assert (told["pending"].value, told["discarded"].value) == (2, 1)
    assert told["reasons"].data == {"malformed": 2}
    assert told["examples"].data == ["0:1 malformed", "0:7 malformed"]
