"""The audit of a stream: every check, one after the other, each with its own verdict."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from confluent_kafka import KafkaException
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError

from penstock.ingestion.errors import IngestionError
from penstock.pipelines.errors import PipelineError
from penstock.quality.audit.again import RESULTS, recomputed
from penstock.quality.audit.books import CHECKS
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.kept import Kept
from penstock.quality.audit.records import archive, delivery, reading
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.verdict import Difference, Report, Verdict, judged, unproven
from penstock.quality.errors import DamagedTableError, NoTableError, QuarantineError

UNREADABLE = (
    DeltaError,
    OSError,
    PipelineError,
    IngestionError,
    KafkaException,
    Py4JError,
    pa.ArrowException,
)
"""What is raised where something that a check needs cannot be had."""


def audit(scope: Scope, sample: Sample) -> Report:
    """Make every check. What one of them finds does not keep the others from being made."""
    return Report(scope.plan.name, scope.upto, tuple(_verdicts(scope, sample)))


def _verdicts(scope: Scope, sample: Sample) -> Iterator[Verdict]:
    for name, check in CHECKS:
        yield made(scope, name, partial(check, scope))
    topics = {topic: Kept(scope, topic) for topic in scope.topics}
    for topic, kept in topics.items():
        for name, of_records in (("delivery", delivery), ("archive", archive), ("reading", reading)):
            yield made(scope, f"{name} {topic}", partial(of_records, kept))
    yield made(scope, RESULTS, partial(recomputed, scope, topics, sample))


def made(scope: Scope, name: str, check: Callable[[], Verdict]) -> Verdict:
    """The verdict of a check: wrong where a table is damaged, and unproven where something else cannot be read.

    Of a table that is not there `files` has said whether it should be. A check that ends in a way that nobody
    foresaw is wrong as well: it proved nothing, and what it met is no table as streams write them.
    """
    from pyspark.errors import PySparkException

    scope.tell(name)
    try:
        return check()
    except DamagedTableError as damage:
        return judged(name, [Difference(str(damage.table), f"it {damage.found}")], "")
    except QuarantineError as damage:
        return judged(name, [Difference("decisions", str(damage))], "")
    except (*UNREADABLE, NoTableError, PySparkException) as problem:
        return unproven(name, f"what it needs cannot be read: {first_line(problem)}")
    except Exception as problem:  # noqa: BLE001  # whatever it is, the other checks are made, and it is told
        met = f"it ended with {type(problem).__name__}: {first_line(problem)}"
        return judged(name, [Difference(name, f"{met}; what it compared is not as streams write it")], "")


def first_line(problem: Exception) -> str:
    """What an error says in a line; some say nothing."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)
