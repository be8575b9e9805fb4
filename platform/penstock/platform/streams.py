"""Which streams there are: the pipelines of the catalog, and an archive for each topic."""

from penstock.pipelines import catalog
from penstock.pipelines.archive.names import archive_names, archived_topic
from penstock.pipelines.plan import Plan
from penstock.quality.expectations.in_stream import with_checks


def plan_of(name: str) -> Plan:
    """The plan of a pipeline as it runs: with the checks that the suites of its topics say."""
    return with_checks(catalog.load(name))


def plan_anew(name: str) -> Plan:
    """The same from its file as it is now, for processes that run for months."""
    return with_checks(catalog.load_anew(name))


def stream_names() -> tuple[str, ...]:
    """Every stream that a host can run, pipelines first."""
    return (*catalog.names(), *archive_names())


def check_stream(name: str) -> None:
    """Raise DefinitionError unless there is such a stream, and it can be run as it is written."""
    if archived_topic(name) is None:
        plan_of(name)


def shown_by(name: str) -> str:
    """The command that shows what a stream writes."""
    topic = archived_topic(name)
    return f"penstock table show {name if topic is None else f'{topic} --kind raw'}"
