"""Which streams there are: the pipelines of the catalog, and an archive for each topic."""

import logging
from collections.abc import Iterator
from functools import cache

from penstock.ingestion.errors import IngestionError
from penstock.pipelines import catalog
from penstock.pipelines.archive.names import archive_names, archived_topic, is_compacted
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan import Plan
from penstock.quality.errors import QualityError
from penstock.quality.expectations.in_stream import with_checks

log = logging.getLogger(__name__)


def plan_of(name: str) -> Plan:
    """The plan of a pipeline as it runs: with the checks that the suites of its topics say."""
    return _checked(catalog.load(name))


def plan_anew(name: str) -> Plan:
    """The same from its file as it is now, for processes that run for months."""
    return _checked(catalog.load_anew(name))


def sound_plans() -> Iterator[Plan]:
    """The plans of all pipelines that can be loaded; of each other one the log says why it cannot."""
    for name in catalog.names():
        if (problem := problem_of(name)) is None:
            yield plan_of(name)
        else:
            _tell_once(name, str(problem))


@cache
def _tell_once(name: str, problem: str) -> None:
    log.warning("goes on without %s, which cannot be loaded: %s", name, problem)


def problem_of(name: str) -> DefinitionError | None:
    """Why a stream cannot be run as it is written; None where it can."""
    topic = archived_topic(name)
    try:
        plan_of(name) if topic is None else is_compacted(topic)
    except DefinitionError as problem:
        return problem
    return None


def _checked(plan: Plan) -> Plan:
    try:
        return with_checks(plan)
    except (QualityError, IngestionError) as problem:
        raise DefinitionError(
            plan.name, f"its checks cannot be used: {problem}", "Mend that file"
        ) from problem


def stream_names() -> tuple[str, ...]:
    """Every stream that a host can run, pipelines first."""
    return (*catalog.names(), *archive_names())


def check_stream(name: str) -> DefinitionError | None:
    """Return why a stream cannot be run as it is written, None where it can; DefinitionError for no stream."""
    problem = problem_of(name)
    if problem is not None and name not in stream_names():
        raise problem
    return problem


def shown_by(name: str, penstock: str = "penstock") -> str:
    """The command that shows what a stream writes, by what a person calls penstock."""
    topic = archived_topic(name)
    return f"{penstock} table show {name if topic is None else f'{topic} --kind raw'}"
