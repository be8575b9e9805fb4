"""Runs all checks of an audit, one after the other."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from confluent_kafka import KafkaException
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError

from penstock.engine.errors import PipelineError
from penstock.ingestion.errors import IngestionError
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.ledger_checks import STREAM_CHECKS
from penstock.quality.audit.recompute_check import RESULTS_CHECK, check_recomputed_results
from penstock.quality.audit.record_checks import check_archive, check_delivery, check_reading
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import (
    AuditDifference,
    AuditReport,
    AuditVerdict,
    judge_differences,
    unproven_verdict,
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
    for name, check in STREAM_CHECKS:
        yield run_check(scope, name, partial(check, scope))
    topics = {topic: TopicView(scope, topic) for topic in scope.topics}
    for topic, topic_view in topics.items():
        for name, topic_check in (
            ("delivery", check_delivery),
            ("archive", check_archive),
            ("reading", check_reading),
        ):
            yield run_check(scope, f"{name} {topic}", partial(topic_check, topic_view))
    yield run_check(scope, RESULTS_CHECK, partial(check_recomputed_results, scope, topics, sample))


def run_check(scope: AuditScope, name: str, check: Callable[[], AuditVerdict]) -> AuditVerdict:
    """Run one check: failed if a table is damaged, unproven if an input cannot be read.

    A table that does not exist makes a check unproven, because the `files` check reports required tables. A check
    that raises an unexpected error fails: it proved nothing, and its input is not what streams write.
    """
    from pyspark.errors import PySparkException

    scope.report_progress(name)
    try:
        return check()
    except DamagedTableError as damage:
        return judge_differences(name, [AuditDifference(str(damage.table), damage.finding)], "")
    except QuarantineError as damage:
        return judge_differences(name, [AuditDifference("decisions", str(damage))], "")
    except (*UNREADABLE_ERRORS, NoTableError, PySparkException) as problem:
        return unproven_verdict(name, f"its input cannot be read: {first_line(problem)}")
    except Exception as problem:  # noqa: BLE001  # the verdict reports it, and the other checks run
        failure = f"the check raised {type(problem).__name__}: {first_line(problem)}"
        return judge_differences(
            name, [AuditDifference(name, f"{failure}; its input is not what streams write")], ""
        )


def first_line(problem: Exception) -> str:
    """Return the first line of an error, or its type if it has no text."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)
