"""Which streams there are: the pipelines of the catalog, and an archive for each topic."""

import logging
from collections.abc import Iterator
from functools import cache

from penstock.engine.archive.archive_names import find_archived_topic, is_compacted, list_archive_names
from penstock.engine.errors import DefinitionError
from penstock.engine.plan import Plan
from penstock.ingestion.errors import IngestionError
from penstock.pipelines import catalog
from penstock.quality.errors import QualityError
from penstock.quality.expectations.stream_checks import add_topic_checks

log = logging.getLogger(__name__)


def load_plan(name: str) -> Plan:
    """The plan of a pipeline as it runs: with the checks that the suites of its topics say."""
    return _add_checks(catalog.load_plan(name))


def reload_plan(name: str) -> Plan:
    """The same from its file as it is now, for processes that run for months."""
    return _add_checks(catalog.reload_plan(name))


def load_valid_plans() -> Iterator[Plan]:
    """The plans of all pipelines that can be loaded; of each other one the log says why it cannot."""
    for name in catalog.pipeline_names():
        if (error := find_definition_error(name)) is None:
            yield load_plan(name)
        else:
            _warn_once(name, str(error))


@cache
def _warn_once(name: str, error_text: str) -> None:
    log.warning("goes on without %s, which cannot be loaded: %s", name, error_text)


def find_definition_error(name: str) -> DefinitionError | None:
    """Why a stream cannot be run as it is written; None where it can."""
    topic = find_archived_topic(name)
    try:
        load_plan(name) if topic is None else is_compacted(topic)
    except DefinitionError as error:
        return error
    return None


def _add_checks(plan: Plan) -> Plan:
    try:
        return add_topic_checks(plan)
    except (QualityError, IngestionError) as error:
        raise DefinitionError(plan.name, f"its checks cannot be used: {error}", "Mend that file") from error


def list_stream_names() -> tuple[str, ...]:
    """Every stream that a host can run, pipelines first."""
    return (*catalog.pipeline_names(), *list_archive_names())


def find_stream_error(name: str) -> DefinitionError | None:
    """Return why a stream cannot be run as it is written, None where it can; DefinitionError for no stream."""
    error = find_definition_error(name)
    if error is not None and name not in list_stream_names():
        raise error
    return error


def table_show_command(name: str, cli_command: str = "penstock") -> str:
    """The command that shows what a stream writes, by what a person calls penstock."""
    topic = find_archived_topic(name)
    return f"{cli_command} table show {name if topic is None else f'{topic} --kind raw'}"
