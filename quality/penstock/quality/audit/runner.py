"""Runs all checks of an audit, one after the other."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from confluent_kafka import KafkaException
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError

from penstock.engine.errors import PipelineError
from penstock.ingestion.errors import IngestionError
from penstock.quality.audit.audit_check import ResultCheck, StreamCheck, TopicCheck, list_checks
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import (
    AuditDifference,
    AuditReport,
    AuditVerdict,
    CheckOutcome,
    judge_differences,
    unproven_outcome,
)
from penstock.quality.errors import DamagedTableError, NoTableError, QuarantineError

UNREADABLE_ERRORS = (
    DeltaError,
    OSError,
    PipelineError,
    IngestionError,
    KafkaException,
    Py4JError,
    pa.ArrowException,
)
"""Errors that mean that a check's input is not available."""


def run_audit(scope: AuditScope, sample: Sample) -> AuditReport:
    """Run every check. A failure of one check does not stop the others.

    Differences are unproven if a replay, an erasure or a repair rewrote what the audit read.
    """
    verdicts = tuple(_run_checks(scope, sample))
    rewrite = (
        "" if all(verdict.differences == () for verdict in verdicts) else scope.describe_rewrite(scope.upto)
    )
    if rewrite:
        verdicts = tuple(_withdraw_differences(verdict, rewrite) for verdict in verdicts)
    return AuditReport(scope.plan.name, scope.upto, verdicts)


def _withdraw_differences(verdict: AuditVerdict, rewrite: str) -> AuditVerdict:
    if not verdict.differences:
        return verdict
    return unproven_outcome(f"{rewrite} during the audit; audit it again").as_verdict(verdict.check)


def _run_checks(scope: AuditScope, sample: Sample) -> Iterator[AuditVerdict]:
    stream_checks, topic_checks, result_checks = (
        list_checks(StreamCheck),
        list_checks(TopicCheck),
        list_checks(ResultCheck),
    )
    progress = _CheckProgress(
        scope, len(stream_checks) + len(scope.topics) * len(topic_checks) + len(result_checks)
    )
    for stream_check in stream_checks:
        yield run_check(progress.start(stream_check.name), partial(stream_check.run, scope))
    topics = {topic: TopicView(scope, topic) for topic in scope.topics}
    for topic, topic_view in topics.items():
        for topic_check in topic_checks:
            name = progress.start(f"{topic_check.name} {topic}")
            yield run_check(name, partial(topic_check.run, topic_view))
    for result_check in result_checks:
        yield run_check(progress.start(result_check.name), partial(result_check.run, scope, topics, sample))


class _CheckProgress:
    """Reports which check runs, of how many."""

    def __init__(self, scope: AuditScope, check_count: int) -> None:
        self._scope = scope
        self._check_count = check_count
        self._started_count = 0

    def start(self, name: str) -> str:
        """Report that a check starts; return its name."""
        self._started_count += 1
        self._scope.report_progress(f"check {self._started_count} of {self._check_count}: {name}")
        return name


def run_check(name: str, check: Callable[[], CheckOutcome]) -> AuditVerdict:
    """Run one check, and report what it found or why it could not run."""
    return _find_outcome(name, check).as_verdict(name)


def _find_outcome(name: str, check: Callable[[], CheckOutcome]) -> CheckOutcome:
    """Return the outcome of a check: failed if a table is damaged, unproven if an input cannot be read.

    A table that does not exist makes a check unproven, because the `files` check reports required tables. A check
    that raises an unexpected error fails: it proved nothing, and its input is not what streams write.
    """
    from pyspark.errors import PySparkException

    try:
        return check()
    except DamagedTableError as damage:
        return judge_differences([AuditDifference(str(damage.table), damage.finding)], "")
    except QuarantineError as damage:
        return judge_differences([AuditDifference("decisions", str(damage))], "")
    except (*UNREADABLE_ERRORS, NoTableError, PySparkException) as problem:
        return unproven_outcome(f"its input cannot be read: {first_line(problem)}")
    except Exception as problem:  # noqa: BLE001  # the verdict reports it, and the other checks run
        failure = f"the check raised {type(problem).__name__}: {first_line(problem)}"
        return judge_differences(
            [AuditDifference(name, f"{failure}; its input is not what streams write")], ""
        )


def first_line(problem: Exception) -> str:
    """Return the first line of an error, or its type if it has no text."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)
