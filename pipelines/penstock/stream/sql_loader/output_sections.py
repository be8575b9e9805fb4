"""EMIT and INTO of a query as sections of a document: trigger, accumulation, tables and topics."""

from typing import Any

from penstock.stream.keyword_registries import SINK_KEYWORDS, TRIGGER_KEYWORDS
from penstock.stream.sql_loader.keyword_nodes import (
    find_sql_keyword,
    name_positional,
    to_keyword_node,
    to_node,
)
from penstock.stream.sql_loader.queries import SqlEmit, SqlSelect
from penstock.stream.sql_loader.tokens import SqlFile
from penstock.stream.sql_loader.values import SqlCall, SqlName, SqlValue

PUBLISH = "PUBLISH"
"""The name in INTO of a topic to which panes are published."""


def list_outputs(file: SqlFile, query: SqlSelect) -> dict[str, Any]:
    """Return the sections of EMIT and INTO."""
    emit = query.emit or SqlEmit()
    words = {name: _to_option(value) for name, value in emit.words.items()}
    sections: dict[str, Any] = {name: words.pop(name) for name in list(words) if name == "accumulation"}
    trigger = {} if emit.trigger is None else to_keyword_node(emit.trigger, TRIGGER_KEYWORDS)
    if isinstance(trigger, dict):
        trigger = {**trigger, **words}
    if trigger:
        sections["trigger"] = trigger
    calls = [SqlCall(value.text) if isinstance(value, SqlName) else value for value in query.sinks]
    published = [call for call in calls if isinstance(call, SqlCall) and call.name.upper() == PUBLISH]
    writes = [_to_sink(file, call) for call in calls if call not in published]
    topics = [_to_topic(file, call) for call in published]
    return {
        **sections,
        **({"write": writes} if writes else {}),
        **({"publish": topics} if topics else {}),
    }


def _to_sink(file: SqlFile, value: SqlValue) -> dict[str, Any]:
    """Return a table and its mode: `LOG(table)`; a name alone is a table of mode latest."""
    if not isinstance(value, SqlCall):
        raise file.problem(
            "INTO", f"{to_node(value)!r}", "Write a sink and its table, as in LOG(panes)", None
        )
    if not value.positional and not value.named:
        return {"table": value.name}
    mode = value.name.renamed(find_sql_keyword(value.name, SINK_KEYWORDS))
    return {**name_positional(value, ("table",)), value.name.renamed("mode"): mode}


def _to_topic(file: SqlFile, call: SqlCall) -> Any:
    """Return the topic of `PUBLISH(topic)`."""
    if len(call.positional) != 1 or call.named:
        raise file.problem("INTO", "PUBLISH has one argument", "Write PUBLISH(topic)", call.name)
    return to_node(call.positional[0])


def _to_option(value: SqlValue) -> Any:
    """Return the value of an option of EMIT; a word such as WHEN_CHANGED in lower case."""
    return value.text.renamed(value.text.lower()) if isinstance(value, SqlName) else to_node(value)
