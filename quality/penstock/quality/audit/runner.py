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
    """Run every check. A failure of one check does not stop the others."""
    return AuditReport(scope.plan.name, scope.upto, tuple(_run_checks(scope, sample)))


def _run_checks(scope: AuditScope, sample: Sample) -> Iterator[AuditVerdict]:
    for stream_check in list_checks(StreamCheck):
        yield run_check(scope, stream_check.name, partial(stream_check.run, scope))
    topics = {topic: TopicView(scope, topic) for topic in scope.topics}
    for topic, topic_view in topics.items():
        for topic_check in list_checks(TopicCheck):
            yield run_check(scope, f"{topic_check.name} {topic}", partial(topic_check.run, topic_view))
    for result_check in list_checks(ResultCheck):
        yield run_check(scope, result_check.name, partial(result_check.run, scope, topics, sample))


def run_check(scope: AuditScope, name: str, check: Callable[[], CheckOutcome]) -> AuditVerdict:
    """Run one check, and report what it found or why it could not run."""
    scope.report_progress(name)
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
