"""Conversion of queries to documents: steps, stages, unions and joins."""

from dataclasses import replace
from typing import Any

from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    WINDOW_KEYWORDS,
)
from penstock.stream.sql_loader.keyword_nodes import (
    find_sql_keyword,
    list_standard_names,
    refuse_misspelt_name,
    to_keyword_node,
    to_node,
)
from penstock.stream.sql_loader.output_sections import list_outputs
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import SqlItem, SqlQuery, SqlSelect, SqlUnion
from penstock.stream.sql_loader.select_lists import SelectLists
from penstock.stream.sql_loader.source_documents import SourceConverter, take_event_time
from penstock.stream.sql_loader.stages import StageChain
from penstock.stream.sql_loader.tokens import SqlFile
from penstock.stream.sql_loader.values import SqlCall, SqlExpression, SqlName

WINDOW_COLUMNS = ("window_start", "window_end")


class QueryConverter:
    """Converts queries to chains of stages."""

    def __init__(self, file: SqlFile) -> None:
        self.file = file
        self.sources = SourceConverter(file, self.convert)
        self.select_lists = SelectLists(file)

    def convert(self, query: SqlQuery, *, is_output: bool = False) -> StageChain:
        """Return the chain of a query. An output is a stage also without an aggregate: its rows are written."""
        if isinstance(query, SqlUnion):
            chain = self._unite([self.convert(part) for part in query.parts])
            return replace(chain, is_stage=True) if is_output else chain
        if query.join is not None:
            return self._convert_join(query)
        chain = StageChain(({},))  # where the source is unknown, the other clauses are still checked
        with self.file.collector.collect():
            chain = self.sources.convert(query.source)
        if is_output or is_stage_query(query):
            return self._convert_stage(query, chain)
        return self._convert_steps(query, chain)

    def _unite(self, parts: list[StageChain]) -> StageChain:
        """Return the input of several queries."""
        for window in (part.window for part in parts if part.window is not None):
            fix = "Write it in GROUP BY of the query over UNION ALL"
            place = next(iter(window)) if isinstance(window, dict) else window
            self.file.collector.add(
                self.file.problem("WINDOW", "a window in a part of UNION ALL", fix, place)
            )
        return StageChain(({"union": [part.fold() for part in parts]},))

    def _convert_steps(self, query: SqlSelect, chain: StageChain) -> StageChain:
        """Return a chain with the filter, and the columns or the statement, of a query without aggregates."""
        if not is_plain_query(query):
            return chain.with_step({PlacedText("sql", *_place(query)): query.step_text})
        has_columns = query.items[0].kind == "column"
        columns = self.select_lists.to_columns(query.items) if has_columns else []
        chain = self._filter(query, chain)
        return chain.with_step({PlacedText("select", *_place(query)): columns}) if columns else chain

    def _filter(self, query: SqlSelect, chain: StageChain) -> StageChain:
        """Return a chain with the condition of WHERE: a filter, or a SQL step if it is more than a condition."""
        if query.where is None:
            return chain
        try:
            parse_condition(query.where, "filter")
        except DefinitionError:
            text = query.where.renamed(f"SELECT * FROM input WHERE {query.where}")  # noqa: S608  # the user's own
            return chain.with_step({query.where.renamed("sql"): text})
        return chain.with_step({query.where.renamed("filter"): query.where})

    def _convert_stage(self, query: SqlSelect, chain: StageChain) -> StageChain:
        """Return a chain with a stage: key, aggregates, window, trigger and outputs."""
        chain = self._filter(query, chain).start_link()
        keys, windows, event_time = self._split_groups(query)
        with self.file.collector.collect():
            chain = self.sources.set_event_time(chain, event_time, query.first)
        windows += [chain.window] if chain.window is not None else []
        windows += [to_keyword_node(each, WINDOW_KEYWORDS) for each in query.windows]
        if len(windows) > 1:
            self._refuse(
                query, "WINDOW", "two windows in one query", "Write it once, after FROM or in GROUP BY"
            )
        distribution = [to_node(each) for each in query.distribution]
        if keys and distribution:
            self._refuse(query, "DISTRIBUTE BY", "set beside GROUP BY", "Remove it: GROUP BY is the key")
        sections: dict[str, Any] = {"key": keys or distribution} if keys or distribution else {}
        if query.has_groups or any(is_aggregate(item) for item in query.items):
            sections["aggregate"] = self.select_lists.to_aggregates(query.items, keys)
        elif not windows and (columns := self.select_lists.to_rows(query.items)):
            sections["rows"] = columns
        if windows:
            sections[PlacedText("window", *_place(query))] = windows[0]
        sections |= list_outputs(self.file, query)
        return replace(chain.with_sections(**sections), is_stage=True, window=None)

    def _refuse(self, query: SqlSelect, part: str, problem: str, fix: str) -> None:
        self.file.collector.add(self.file.problem(part, problem, fix, query.first))

    def _split_groups(self, query: SqlSelect) -> tuple[list[PlacedText], list[Any], PlacedText | None]:
        """Return the key, the window, and its event time, of GROUP BY."""
        keys: list[PlacedText] = []
        windows: list[Any] = []
        event_time: PlacedText | None = None
        for value in query.groups:
            match value:
                case SqlName(text):
                    keys += [] if text.lower() in WINDOW_COLUMNS else [text]
                case SqlCall():
                    call, event_time = _take_time(value)
                    with self.file.collector.collect():
                        refuse_misspelt_name(self.file, call, WINDOW_KEYWORDS)
                        windows.append(to_keyword_node(call, WINDOW_KEYWORDS))
                case _:
                    written = value.text if isinstance(value, SqlExpression) else value
                    fix = "Compute it in a query of WITH, and group by its column"
                    place = written if isinstance(written, PlacedText) else query.first
                    problem = f"{written!r} is not a column"
                    self.file.collector.add(self.file.problem("GROUP BY", problem, fix, place))
        return keys, windows, event_time

    def _convert_join(self, query: SqlSelect) -> StageChain:
        """Return the stage of a join."""
        join = query.join
        assert join is not None
        has_clause = {"WHERE": query.where, "GROUP BY": query.has_groups, "DISTRIBUTE BY": query.distribution}
        for part in (part for part, clause in has_clause.items() if clause):
            fix = "Name this query in WITH, and write it in the next one; or filter a table in a query before"
            self._refuse(query, part, "set for a join", fix)
        left, right = self.sources.convert(query.source), self.sources.convert(join.right)
        section: dict[str, Any] = {"left": left.fold(), "right": right.fold(), "by": join.by, "how": join.how}
        take = self.select_lists.to_take(query.items, join.by, (left, right))
        if take is not None:
            section["take"] = take
        sections: dict[str, Any] = {join.how.renamed("join"): section}
        windows = [side.window for side in (left, right) if side.window is not None]
        windows += [to_keyword_node(each, WINDOW_KEYWORDS) for each in query.windows]
        if any(window != windows[0] for window in windows):
            self._refuse(
                query, "WINDOW", "the sides of a join have two windows", "Write one window in WINDOW"
            )
        if windows:
            sections["window"] = windows[0]
        return StageChain(({**sections, **list_outputs(self.file, query)},), is_stage=True)


def is_plain_query(query: SqlSelect) -> bool:
    """Whether the select list is `*` alone, or columns without expressions."""
    return {item.kind for item in query.items} in ({"star"}, {"column"})


def is_stage_query(query: SqlSelect) -> bool:
    """Whether a query computes or writes something, beyond steps."""
    has_clause = (
        query.has_groups or query.emit is not None or len(query.windows) > 0 or len(query.distribution) > 0
    )
    return has_clause or len(query.sinks) > 0 or any(is_aggregate(item) for item in query.items)


def is_aggregate(item: SqlItem) -> bool:
    """Whether an item calls an aggregate."""
    if item.kind != "call" or not isinstance(item.value, SqlCall):
        return False
    return (
        ":" in item.value.name
        or find_sql_keyword(item.value.name, AGGREGATE_KEYWORDS) in AGGREGATE_KEYWORDS.kinds_by_name
    )


def _take_time(call: SqlCall) -> tuple[SqlCall, PlacedText | None]:
    """Return a window of GROUP BY without the event time that Flink writes first: `TUMBLE(at, ...)`."""
    first = call.positional[0] if call.positional else None
    if call.name.upper() in list_standard_names(WINDOW_KEYWORDS) and isinstance(first, SqlName):
        return replace(call, positional=call.positional[1:]), first.text
    return take_event_time(call)


def _place(query: SqlSelect) -> tuple[int, int]:
    return query.first.line, query.first.column
