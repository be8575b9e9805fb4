"""Conversion of what follows FROM to documents: topics, unions, windows and steps as table functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.names import suggest_or_list
from penstock.engine.errors import UnknownNameError
from penstock.ingestion.contracts import list_contract_names
from penstock.stream.keyword_registries import WINDOW_KEYWORDS
from penstock.stream.sql_loader.keyword_nodes import (
    find_sql_keyword,
    list_standard_names,
    name_positional,
    to_keyword_node,
    to_node,
)
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import (
    AliasedSource,
    FunctionSource,
    NamedSource,
    QuerySource,
    SqlQuery,
    SqlSource,
)
from penstock.stream.sql_loader.stages import StageChain
from penstock.stream.sql_loader.tokens import SqlFile, SqlToken
from penstock.stream.sql_loader.values import SqlCall
from penstock.stream.yaml_loader.steps import STEP_PARSERS

UNSUPPORTED_FUNCTIONS = {
    "cumulate": "Write TUMBLE, and EMIT AFTER_WATERMARK(EARLY => EVERY(...)) for panes before its end",
    "stateful": "SQL has no word for a stateful function; write it in YAML (stateful) or Python (.stateful())",
}


@dataclass
class SourceConverter:
    """Converts sources. `convert_query` converts a query in parentheses."""

    file: SqlFile
    convert_query: Callable[[SqlQuery], StageChain]
    chains: dict[str, StageChain] = field(default_factory=dict)
    """The queries of WITH so far."""
    read_names: set[str] = field(default_factory=set)
    """The queries of WITH that another one reads."""

    def convert(self, aliased: AliasedSource) -> StageChain:
        """Return the chain of a source with the names that qualify its columns."""
        return replace(self._convert_source(aliased.source), qualifiers=aliased.qualifiers)

    def _convert_source(self, source: SqlSource) -> StageChain:
        match source:
            case NamedSource(name, options):
                return self._convert_topic(name, {key: to_node(value) for key, value in options.items()})
            case QuerySource(query):
                return self.convert_query(query)
            case FunctionSource():
                return self._convert_function(source)

    def _convert_topic(self, name: PlacedText, options: Mapping[str, object]) -> StageChain:
        if name in self.chains:
            if options:
                fix = "Write them after the topic, in the query of this name"
                raise self.file.problem("WITH", f"{name!s} is a query, and has no options of read", fix, name)
            self.read_names.add(name)
            return self.chains[name]
        topics = list_contract_names()
        if name not in topics:
            fix = suggest_or_list(name, [*self.chains, *topics], "Queries and topics")
            location = self.file.problem("FROM", "", "", name).location
            problem = f"there is no topic or query {str(name)!r}"
            raise UnknownNameError("FROM", problem, fix, location, name=name)
        read = {"topic": name, **options} if options else name
        return StageChain(({name.renamed("read"): read},), input_name=name)

    def _convert_function(self, source: FunctionSource) -> StageChain:
        call = source.call
        name = call.name.lower()
        if name in UNSUPPORTED_FUNCTIONS:
            raise self.file.problem(
                "FROM", f"there is no {call.name.upper()}", UNSUPPORTED_FUNCTIONS[name], call.name
            )
        if source.inner is None:
            return self._convert_input(call)
        chain = self._convert_source(source.inner)
        if name == "deduplicate":
            return self._deduplicate(chain, call)
        if name in STEP_PARSERS:
            return chain.with_step(_to_step(name, call))
        if find_sql_keyword(call.name, WINDOW_KEYWORDS) in WINDOW_KEYWORDS.kinds_by_name or ":" in call.name:
            return self._add_window(chain, call)
        words = [
            "deduplicate",
            *STEP_PARSERS,
            *list_standard_names(WINDOW_KEYWORDS),
            *WINDOW_KEYWORDS.kinds_by_name,
        ]
        fix = suggest_or_list(name.upper(), [word.upper() for word in words], "Table functions")
        raise self.file.problem("FROM", f"there is no table function {call.name.upper()}", fix, call.name)

    def _convert_input(self, call: SqlCall) -> StageChain:
        if call.name.lower() != "read_panes":
            fix = f"Write its table first, as in TABLE({call.name.upper()}(TABLE sensors, ...))"
            raise self.file.problem("FROM", f"{call.name.upper()} has no table", fix, call.name)
        section = name_positional(call, ("topic",))
        input_name = str(section.get("topic", ""))
        return StageChain(({call.name.renamed("read_panes"): section},), input_name=input_name)

    def _add_window(self, chain: StageChain, call: SqlCall) -> StageChain:
        """Return a chain with a window, whose first argument may be DESCRIPTOR with the event time."""
        call, event_time = take_event_time(call)
        named = {name: value for name, value in call.named.items() if name != "timecol"}
        for name, value in call.named.items():
            event_time = to_node(value) if name == "timecol" else event_time
        chain = self.set_event_time(chain, event_time, call.name)
        if chain.window is not None:
            raise self.file.problem("FROM", "a window around a window", "Write one of them", call.name)
        return replace(chain, window=to_keyword_node(replace(call, named=named), WINDOW_KEYWORDS))

    def set_event_time(self, chain: StageChain, event_time: Any, window: PlacedText | SqlToken) -> StageChain:
        """Return a chain with the event time of DESCRIPTOR. Raises DefinitionError if it has another one."""
        if event_time is None:
            return chain
        timed = chain.with_event_time(event_time) if isinstance(event_time, PlacedText) else None
        if timed is None:
            place = event_time if isinstance(event_time, PlacedText) else window
            problem = "the event time of these rows is given, or it is not one column"
            fix = "Remove DESCRIPTOR; event_time in the options of a topic names another column"
            raise self.file.problem("DESCRIPTOR", problem, fix, place)
        return timed

    def _deduplicate(self, chain: StageChain, call: SqlCall) -> StageChain:
        if chain.is_stage or len(chain.links) > 1 or "steps" in chain.last:
            fix = "Write it around the topic: TABLE(DEDUPLICATE(TABLE topic, ...)), and other steps after it"
            raise self.file.problem("DEDUPLICATE", "after steps or a stage", fix, call.name)
        options = name_positional(call, ("by", "within"))
        return replace(chain, links=({**chain.last, call.name.renamed("deduplicate"): options},))


def _to_step(name: str, call: SqlCall) -> object:
    """Return a step as YAML has it: its value after its keyword, and its options beside it."""
    keyword = call.name.renamed(name)
    options = {option: to_node(value) for option, value in call.named.items()}
    if not call.positional:
        return {keyword: options}
    value = [to_node(each) for each in call.positional]
    return {keyword: value[0] if len(value) == 1 else value, **options}


def take_event_time(call: SqlCall) -> tuple[SqlCall, PlacedText | None]:
    """Return a window without its first argument if that is DESCRIPTOR(column), and the column."""
    first = call.positional[0] if call.positional else None
    if isinstance(first, SqlCall) and first.name.upper() == "DESCRIPTOR":
        return replace(call, positional=call.positional[1:]), to_node(first)
    return call, None
