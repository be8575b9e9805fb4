"""The tables and other sinks whose content a replay replaces."""

from collections.abc import Callable, Mapping
from functools import partial

from penstock.engine.errors import ReplayError
from penstock.engine.plan.sinks import ReplayRule
from penstock.engine.plan.stages import Plan
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.tables.table_takeover import FilePredicate, take_over_table


def refuse_lasting_sinks(plan: Plan) -> None:
    """Raise ReplayError for a sink whose content a replay can neither replace nor leave as it is."""
    for sink in (sink for stage in plan.stages for sink in stage.all_sinks):
        if sink.replay_rule is ReplayRule.REFUSE:
            raise ReplayError(
                plan.name,
                f"{sink.path} cannot be replaced by the content of a replay",
                "Set replay_rule of its sink and define replace_content, or replay with --beside",
            )


def list_replaced_tables(plan: Plan) -> Mapping[str, Callable[..., object]]:
    """Return the tables and other sinks that a replay replaces, by path, each with the function that does it."""
    replaced_sinks = {
        sink.path: sink.replace_content
        for stage in plan.stages
        for sink in stage.all_sinks
        if sink.replay_rule is ReplayRule.REPLACE
    }
    return {
        **dict.fromkeys(list_owned_paths(plan), take_over_table),
        **dict.fromkeys(
            list_quarantine_paths(plan), partial(take_over_table, is_ours=_batch_owner_filter(plan.name))
        ),
        **replaced_sinks,
    }


def _batch_owner_filter(stream: str) -> FilePredicate:
    """Return which files of a table with several writers this stream has written."""
    return lambda name: name.startswith(f"{stream}-")
