"""Returns the paths of a stream's tables, relative to the warehouse."""

from penstock.engine.plan.stages import Plan, Stage

ERASURES_FOLDER = "erasures"
"""The folder of tables that record which keys were erased."""

LOOKUPS_FOLDER = "lookups"
"""The folder of tables that record the lookup versions of each batch."""


def list_result_paths(plan: Plan) -> list[str]:
    """Return the paths of the result tables of all stages: of the sinks that are Delta tables."""
    return [sink.path for stage in plan.stages for sink in stage.sinks if sink.is_delta_table]


def stage_ledger_path(plan: Plan, stage: Stage) -> str:
    """Return the path of a source stage's ledger: what became of the records of each batch."""
    return f"ledger/{_stage_table_name(plan, stage)}"


def late_records_path(plan: Plan, stage: Stage) -> str:
    """Return the path of the table of late records of a source stage."""
    return f"late/{_stage_table_name(plan, stage)}"


def list_owned_paths(plan: Plan) -> list[str]:
    """Return every table that only this stream writes, except the log of erased keys, which has no batches."""
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
    """Return the quarantine tables of all topics that a stream reads; other streams write them too."""
    return [f"quarantine/{source.name}" for source in plan.sources]


def _stage_table_name(plan: Plan, stage: Stage) -> str:
    """Return the table name of a source stage; for the first one, the name of the stream."""
    return plan.name if stage == plan.first_source_stage else f"{plan.name}.{stage.name}"
