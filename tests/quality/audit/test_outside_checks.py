"""Checks outside of the source tree, installed as entry points."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.installed_kinds import installed_kinds
from tests.quality.audit.recorded_stream import create_scope, run_stream

from penstock.core.kafka_client import BrokerAccess
from penstock.infra.local_broker import LocalBroker
from penstock.platform.cli.commands.audit import print_report
from penstock.quality.audit.audit_check import AUDIT_CHECKS, ResultCheck, StreamCheck, TopicCheck, list_checks
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit

OUTSIDE_CHECKS = '''
"""A check of each kind."""

from penstock.quality.audit.audit_check import result_check, stream_check, topic_check
from penstock.quality.audit.verdict import AuditDifference, judge_differences, unproven_outcome

LIMIT = 1


@stream_check("batch sizes", order=45)
def check_batch_sizes(scope):
    differences = (
        AuditDifference(f"batch {row['batch_id']}", f"read {row['read']} records")
        for row in scope.ledger.sort_by([("batch_id", "ascending"), ("partition", "ascending")]).to_pylist()
        if row["read"] > LIMIT
    )
    return judge_differences(differences, f"no batch read more than {LIMIT} records of a partition")


@topic_check("name")
def check_topic_name(topic_view):
    return judge_differences((), f"{topic_view.topic} is a name")


@result_check("trend")
def check_trend(scope, topics, sample):
    return unproven_outcome(f"no trend of {', '.join(topics)} for {sample.key_share:.0%} of the keys")
'''


@pytest.fixture
def _outside_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_checks": OUTSIDE_CHECKS}
    with installed_kinds(
        tmp_path,
        monkeypatch,
        AUDIT_CHECKS,
        modules,
        batch_sizes="outside_checks:check_batch_sizes",
        name="outside_checks:check_topic_name",
        trend="outside_checks:check_trend",
        limit="outside_checks:LIMIT",
    ):
        yield


CHECKS_OF_STREAM = (
    *("files", "writers", "offset ranges", "accounts", "agreement", "late and quarantined", "panes"),
    "quarantine",
)
CHECKS_OF_TOPIC = ("delivery", "archive", "reading")


def test_the_checks_of_penstock_have_a_fixed_order() -> None:
    assert tuple(check.name for check in list_checks(StreamCheck)) == CHECKS_OF_STREAM
    assert tuple(check.name for check in list_checks(TopicCheck)) == CHECKS_OF_TOPIC
    assert [check.name for check in list_checks(ResultCheck)] == ["results"]


@pytest.mark.kafka
@pytest.mark.usefixtures("_outside_checks")
def test_installed_checks_run_in_an_audit_and_are_reported(
    broker: LocalBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope = create_scope(run_stream(tmp_path / "stream"))
    report = run_audit(replace(scope, broker=BrokerAccess(broker.bootstrap)), Sample())
    assert [verdict.check for verdict in report.verdicts] == [
        *(*CHECKS_OF_STREAM[:5], "batch sizes", *CHECKS_OF_STREAM[5:]),
        *(f"{name} records" for name in (*CHECKS_OF_TOPIC, "name")),
        *("results", "trend"),
    ]
    assert str(report.first_difference) == "batch 0: read 2 records"
    print_report(report)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "batch sizes failed batch 0: read 2 records" in lines
    assert "name records passed records is a name" in lines
    assert "trend unproven no trend of records for 100% of the keys" in lines
