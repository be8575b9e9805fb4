"""Where the tables of a stream are, below the warehouse."""

from penstock.engine.plan.sinks import CompleteTableSink, FinalPanes, LatestValues, PaneLog, Sink
from penstock.engine.plan.stages import Plan, Stage

LOOKUPS_FOLDER = "lookups"
"""The folder for the versions of tables that batches looked into."""


def sink_folder(sink: Sink) -> str:
    """The folder for tables of a kind."""
    match sink:
        case PaneLog():
            return "panes"
        case FinalPanes():
            return "final"
        case LatestValues():
            return "latest"
        case CompleteTableSink():
            return "complete"


def result_path(sink: Sink) -> str:
    """Where the table of a sink is."""
    return f"{sink_folder(sink)}/{sink.table}"


def list_result_paths(plan: Plan) -> list[str]:
    """The tables of results of all stages."""
    return [result_path(sink) for stage in plan.stages for sink in stage.sinks]


def stage_ledger_path(plan: Plan, stage: Stage) -> str:
    """The account of what a first stage did with the records that were read."""
    return f"ledger/{_stage_table_name(plan, stage)}"


def late_records_path(plan: Plan, stage: Stage) -> str:
    """The records that came too late for a first stage."""
    return f"late/{_stage_table_name(plan, stage)}"


def list_owned_paths(plan: Plan) -> list[str]:
    """Every table that a stream alone writes, but the account of erased keys, which has no batches."""
    paths = list_result_paths(plan)
    paths += [
        make_path(plan, stage)
        for stage in plan.source_stages
        for make_path in (late_records_path, stage_ledger_path)
    ]
    paths += [f"{LOOKUPS_FOLDER}/{plan.name}"] if plan.lookups else []
    paths += [f"checks/{plan.name}"] if any(source.checks for source in plan.sources) else []
    return paths


def list_quarantine_paths(plan: Plan) -> list[str]:
    """The tables of records that are no good, of all topics that a stream reads; other streams write there too."""
    return [f"quarantine/{source.name}" for source in plan.sources]


def _stage_table_name(plan: Plan, stage: Stage) -> str:
    """The name of a first stage's own tables: the stream's, for the first of them."""
    return plan.name if stage == plan.first_source_stage else f"{plan.name}.{stage.name}"
