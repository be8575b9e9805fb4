"""The page of a table: its newest rows, its columns with their meanings, and its versions."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from penstock.engine.archive.archive_names import find_archived_topic
from penstock.engine.errors import DefinitionError
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.table_owner import read_table_owner
from penstock.pipelines import catalog
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.live_page import LivePage, ViewModel
from penstock.platform.errors import TableQueryError
from penstock.platform.lineage.result_columns import describe_result_columns
from penstock.platform.services.stream_catalog import load_plan
from penstock.platform.services.table_rows import RowQuery, TableRows, read_rows
from penstock.platform.services.warehouse_tables import WarehouseTable, find_table

SHOWN_ROWS, SHOWN_VERSIONS = 50, 10


@dataclass(frozen=True)
class DescribedColumn:
    """A column: its type, and what it means where the pipeline says it."""

    name: str
    type: str
    meaning: str
    is_personal: bool


@dataclass(frozen=True)
class TableVersion:
    """A version of a table: who wrote what, and when."""

    number: int
    at_ms: int
    operation: str


def read_table_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page. Raises TableNotFoundError for a table that there is not."""
    table = find_table(
        context.settings.warehouse_path, request.path_params["table"], request.path_params["kind"]
    )
    where = request.query_params.get("where", "").strip()
    show_all = request.query_params.get("columns") == "all"
    rows, problem = _read_rows(table, RowQuery(SHOWN_ROWS, all_columns=show_all, where=where), context)
    delta_table = open_delta_table(table.path)
    owner = read_table_owner(delta_table)
    fields = [(field.name, str(field.type)) for field in delta_table.to_pyarrow_dataset().schema]
    return {
        "table": table,
        "owner": "" if owner is None else owner.stream,
        "where": where,
        "show_all": show_all,
        "rows": rows,
        "limit": SHOWN_ROWS,
        "query_problem": problem,
        "columns": _describe_columns(table, fields, "" if owner is None else owner.stream),
        "versions": [
            TableVersion(entry["version"], entry["timestamp"], str(entry.get("operation", "")))
            for entry in delta_table.history(SHOWN_VERSIONS)
        ],
    }


def _read_rows(table: WarehouseTable, query: RowQuery, context: ConsoleContext) -> tuple[TableRows, str]:
    try:
        return read_rows(table, query, context.clock()), ""
    except TableQueryError as error:
        return TableRows((), (), ()), str(error).replace("--where", "The condition").replace("``", "`")


def _describe_columns(
    table: WarehouseTable, fields: Sequence[tuple[str, str]], owner: str
) -> list[DescribedColumn]:
    """Return every column, with the meaning that the plan of its stream gives it."""
    meanings = _find_meanings(table, owner)
    return [meanings.get(name, DescribedColumn(name, column_type, "", False)) for name, column_type in fields]


def _find_meanings(table: WarehouseTable, owner: str) -> dict[str, DescribedColumn]:
    if owner not in catalog.pipeline_names() or find_archived_topic(owner) is not None:
        return {}
    try:
        plan = load_plan(owner)
    except DefinitionError:
        return {}
    for stage in plan.stages:
        for sink in stage.sinks:
            if (sink.folder, sink.name) == (table.kind, table.name):
                return {
                    column.name: DescribedColumn(
                        column.name, column.type, column.description, column.is_personal
                    )
                    for column in describe_result_columns(plan, stage, sink)
                }
    return {}


ROUTES = [LivePage("table.html", read_table_page, interval_s=5.0).route("/tables/{kind}/{table}", "table")]
