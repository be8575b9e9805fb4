"""The known streams: the pipelines of the catalog, and an archive for each topic."""

import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.names import explain_unknown_name
from penstock.engine.archive.archive_names import find_archived_topic, is_compacted, list_archive_names
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.ingestion.errors import IngestionError
from penstock.pipelines import catalog
from penstock.platform.errors import UnknownStreamError
from penstock.platform.services.future_skew import apply_skew_setting
from penstock.platform.services.table_claims import find_claim_conflict
from penstock.platform.settings import load_settings
from penstock.quality.errors import QualityError
from penstock.quality.expectations.stream_checks import add_topic_checks

log = logging.getLogger(__name__)


def load_plan(name: str) -> Plan:
    """Load the plan of a pipeline, with the checks of its topics and the limit on future event times.

    Raises DefinitionError if it is invalid, or if one of its tables belongs to another stream.
    """
    return _refuse_tables_of_others(_complete_plan(catalog.load_plan(name)))


def reload_plan(name: str) -> Plan:
    """Load the plan again from its current file, for long-running processes."""
    return _refuse_tables_of_others(_complete_plan(catalog.reload_plan(name)))


def load_valid_plans() -> Iterator[Plan]:
    """Yield the plans of all valid pipelines; log the error of each invalid one."""
    for name in catalog.pipeline_names():
        if (error := find_pipeline_error(name)) is None:
            yield load_plan(name)
        else:
            _warn_once(name, str(error))


@cache
def _warn_once(name: str, error_text: str) -> None:
    log.warning("Pipeline skipped; cannot load it (pipeline=%s): %s", name, error_text)


def find_definition_error(name: str) -> DefinitionError | None:
    """Return why a stream's current definition cannot run, None if it can."""
    topic = find_archived_topic(name)
    try:
        load_plan(name) if topic is None else is_compacted(topic)
    except DefinitionError as error:
        return error
    return None


def find_pipeline_error(name: str) -> DefinitionError | None:
    """Return why the file of a pipeline cannot run, None if it can. An archive of its name is not affected."""
    topic = find_archived_topic(name)
    if topic is None:
        return find_definition_error(name)
    problem = f"stream {name} is the archive of topic {topic}"
    return DefinitionError("the file", problem, "Rename it", display_path(catalog.pipeline_file(name)))


def find_invalid_pipelines() -> dict[str, DefinitionError]:
    """Return the error of each pipeline that cannot run, by name."""
    errors = {name: find_pipeline_error(name) for name in catalog.pipeline_names()}
    return {name: error for name, error in errors.items() if error is not None}


def _refuse_tables_of_others(plan: Plan) -> Plan:
    if (conflict := find_claim_conflict(plan.name)) is not None:
        raise conflict
    return plan


def refuse_invalid_definition(stream: str) -> None:
    """Raise the error of a stream's definition, before its desired state changes. A removed file is no error."""
    if stream in list_stream_names() and (error := find_definition_error(stream)) is not None:
        raise error


def _complete_plan(plan: Plan) -> Plan:
    """Add what the files of a pipeline leave to suites and settings."""
    plan = apply_skew_setting(plan, load_settings().settings.max_future_skew)
    try:
        return add_topic_checks(plan)
    except (QualityError, IngestionError) as error:
        raise DefinitionError(plan.name, f"its checks are invalid: {error}", "Fix that file") from error


def check_pipeline_exists(name: str) -> None:
    """Raise UnknownStreamError, with the nearest match, if the catalog has no pipeline of that name."""
    names = catalog.pipeline_names()
    if name not in names:
        raise UnknownStreamError(explain_unknown_name("pipeline", name, names, "penstock demo --list"))


def list_stream_names() -> tuple[str, ...]:
    """List every stream that a host can run, pipelines first."""
    return (*catalog.pipeline_names(), *list_archive_names())


def list_streams_without_file(streams: Path) -> list[str]:
    """List the streams that have a folder with state, and no file any more."""
    folders = {path.name for path in streams.iterdir() if path.is_dir()} if streams.is_dir() else set()
    return sorted(folders - {*list_stream_names()})


def find_stream_error(name: str) -> DefinitionError | None:
    """Return why a stream's definition cannot run, None if it can. Raises DefinitionError for an unknown stream."""
    error = find_definition_error(name)
    if error is not None and name not in list_stream_names():
        raise error
    return error


def table_show_command(name: str, cli_command: str = "penstock") -> str:
    """Return the command that shows a stream's results; `cli_command` is how the user calls penstock."""
    topic = find_archived_topic(name)
    return f"{cli_command} table show {name if topic is None else f'{topic} --kind raw'}"
