"""What depends on tables and topics: pipelines that look them up, read them, or whose state does."""

from collections.abc import Iterator, Sequence

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.pipelines import catalog
from penstock.platform.services.table_claims import read_stored_plans
from penstock.platform.settings import Settings


def list_dependents(
    settings: Settings, tables: Sequence[str], topics: Sequence[str], except_stream: str = ""
) -> Iterator[str]:
    """Yield a sentence for each stream that reads one of these tables or topics."""
    for plan in list_all_plans(settings):
        if plan.name != except_stream:
            looked_up = {step.table for step in plan.lookups} & {*tables}
            yield from (f"pipeline {plan.name} looks up {name}" for name in sorted(looked_up))
            read_topics = {topic_of(source) for source in plan.sources} & {*topics}
            yield from (f"pipeline {plan.name} reads topic {name}" for name in sorted(read_topics))


def list_all_plans(settings: Settings) -> Iterator[Plan]:
    """Yield the definition of each pipeline, and the stored one of each stream whose file is gone or invalid."""
    names = set()
    for name in catalog.pipeline_names():
        try:
            yield catalog.load_plan(name)
        except DefinitionError:
            continue
        names.add(name)
    yield from (plan for plan in read_stored_plans(settings.home / "streams") if plan.name not in names)
