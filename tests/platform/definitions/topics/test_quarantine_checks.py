"""Checks of quarantines."""

from dagster import AssetCheckSeverity, AssetSpec, Definitions
from pyarrow import ArrowInvalid
from tests.quality.quarantine.test_decisions import quarantined_record

from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.definitions.topics.quarantine_checks import (
    QUARANTINE_JOB,
    build_quarantine_definitions,
)
from penstock.quality.quarantine.dead_letters import to_quarantined_records
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.record_status import QuarantineStatus, build_statuses


def test_an_unreadable_quarantine_fails_only_its_own_check(instance) -> None:
    def read_statuses(topic: str) -> list[QuarantineStatus]:
        if topic == "clicks":
            raise ArrowInvalid("a file is not what it was")
        return []

    topics = ("clicks", "sensors")
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(topic_key(topic)) for topic in topics]),
        build_quarantine_definitions(topics, read_statuses),
    )
    result = defs.resolve_job_def(QUARANTINE_JOB).execute_in_process(instance=instance)
    evaluations = {
        evaluation.asset_key.path[-1]: evaluation for evaluation in result.get_asset_check_evaluations()
    }
    assert {topic: evaluation.passed for topic, evaluation in evaluations.items()} == {
        "clicks": False,
        "sensors": True,
    }
    assert evaluations["clicks"].description == "could not run: a file is not what it was"


def test_pending_records_are_counted_by_reason(instance) -> None:
    discarded = QuarantineDecision("discarded", 0, 2, 5)
    statuses = build_statuses(
        [quarantined_record(1), quarantined_record(2), quarantined_record(7)], [discarded], {}
    )
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(topic_key(topic)) for topic in ("sensors", "clicks")]),
        build_quarantine_definitions(
            ["sensors", "clicks"], lambda topic: statuses if topic == "sensors" else []
        ),
    )
    result = defs.resolve_job_def(QUARANTINE_JOB).execute_in_process(instance=instance)
    evaluations = {
        evaluation.asset_key.path[-1]: evaluation for evaluation in result.get_asset_check_evaluations()
    }
    assert {topic: evaluation.passed for topic, evaluation in evaluations.items()} == {
        "sensors": False,
        "clicks": True,
    }
    metadata = evaluations["sensors"].metadata
    assert evaluations["sensors"].severity is AssetCheckSeverity.WARN
    assert (metadata["pending"].value, metadata["discarded"].value) == (2, 1)
    assert metadata["reasons"].data == {"malformed": 2}
    assert metadata["examples"].data == ["0:1 malformed", "0:7 malformed"]


def test_a_dead_letter_that_waits_fails_the_check(instance) -> None:
    letter = StoredRecord(
        0, 12, 1_000, None, b"{", {"penstock-reason": b"malformed", "penstock-producer": b"p"}
    )
    statuses = build_statuses(list(to_quarantined_records("sensors", [letter])), [], {})
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(topic_key("sensors"))]),
        build_quarantine_definitions(["sensors"], lambda _: statuses),
    )
    result = defs.resolve_job_def(QUARANTINE_JOB).execute_in_process(instance=instance)
    (evaluation,) = result.get_asset_check_evaluations()
    metadata = evaluation.metadata
    assert evaluation.passed is False
    assert (metadata["pending"].value, metadata["pending_dead_letters"].value) == (1, 1)
    assert metadata["examples"].data == ["dead-letters/0:12 malformed"]
