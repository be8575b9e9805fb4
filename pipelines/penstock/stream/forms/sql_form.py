"""A pipeline as SQL: one CREATE STREAM statement, with a query of WITH for each stage and step before the last."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.errors import DefinitionError
from penstock.stream.forms.sections import (
    describe_deduplication,
    describe_sections,
    describe_topic,
    find_panes_input,
)
from penstock.stream.forms.sql_clauses import unite, write_emit, write_items, write_taken
from penstock.stream.forms.sql_steps import is_where, write_step
from penstock.stream.forms.sql_text import (
    quote_name,
    quote_path,
    write_aggregate,
    write_call,
    write_options,
    write_sink,
    write_table,
    write_table_function,
    write_type,
)
from penstock.stream.forms.steps import StepForm
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.plan_builder import iter_outputs, name_stages

Sections = dict[str, Any]


def format_as_sql(name: str, definition: PipelineDefinition) -> str:
    """Return a pipeline as the text of a SQL file."""
    return _SqlWriter(name, name_stages(name, definition)).write(tuple(iter_outputs(definition)))


@dataclass
class _SqlWriter:
    name: str
    stage_names: dict[PipelineDefinition, str]
    queries: dict[str, str] = field(default_factory=dict)
    """The queries of WITH so far."""

    def write(self, outputs: Sequence[PipelineDefinition]) -> str:
        """Return the statement. Its last query is the first output that no other stage reads."""
        upstream = {each.without_siblings() for stage in self.stage_names for each in _list_upstream(stage)}
        leaves = [output for output in outputs if output not in upstream]
        main, *others = leaves
        for output in others:
            self._name_stage(output)
        main_query = self._write_stage(main, is_main=True)
        stage_name = self.stage_names[main]
        options = f" WITH (name = {quote_name(stage_name)})" if stage_name != self.name else ""
        queries = ",\n".join(
            f"{quote_name(name)} AS (\n{_indent(query)}\n)" for name, query in self.queries.items()
        )
        head = f"CREATE STREAM {quote_name(self.name)}{options} AS\n"
        return f"{head}WITH {queries}\n{main_query};\n" if queries else f"{head}{main_query};\n"

    def _name_stage(self, definition: PipelineDefinition) -> str:
        """Return the name of the query of a stage, and write the query first."""
        stage = definition.without_siblings()
        name = self.stage_names[stage]
        if name not in self.queries:
            query = self._write_stage(stage)
            self.queries[name] = query
        return quote_name(name)

    def _write_stage(self, definition: PipelineDefinition, *, is_main: bool = False) -> str:
        """Return the query of a stage."""
        sections = describe_sections(definition)
        if "stateful" in sections:
            fix = "Write it in YAML (stateful: {function: module:name, ...}) or in Python (.stateful(...))"
            raise DefinitionError("stateful", "SQL has no word for a stateful function", fix)
        if definition.join_spec is not None:
            lines = self._write_join(definition, sections)
        else:
            lines = self._write_select(definition, sections)
        lines += write_emit(sections)
        sinks = [write_sink(call) for call in sections.get("write", ())]
        sinks += [f"PUBLISH({write_table(topic)})" for topic in sections.get("publish", ())]
        if sinks and not (is_main and sinks == [f"LATEST({write_table(self.name)})"]):
            lines.append(f"INTO {', '.join(sinks)}")
        return "\n".join(lines)

    def _write_select(self, definition: PipelineDefinition, sections: Sections) -> list[str]:
        """Return SELECT, FROM, WHERE and GROUP BY of a stage. Its last filter is its WHERE."""
        steps: list[StepForm] = sections.get("steps", [])
        has_filter = bool(steps) and is_where(steps[-1])
        source = self._write_source(definition, steps[:-1] if has_filter else steps)
        key = [quote_path(column) for column in sections.get("key", ())]
        window = [write_call(sections["window"])] if "window" in sections else []
        if "rows" in sections:
            columns = sections["rows"].items()
            items = [
                f"CAST({quote_name(name)} AS {write_type(each)}) AS {quote_name(name)}"
                for name, each in columns
            ]
            groups = [f"DISTRIBUTE BY {', '.join(key)}"] if key else []
        else:
            aggregates = sections.get("aggregate", {}).items()
            items = [*key, *(f"{write_aggregate(call)} AS {quote_name(name)}" for name, call in aggregates)]
            groups = [f"GROUP BY {', '.join([*key, *window])}"] if key or window else []
        where = [f"WHERE {steps[-1].value}"] if has_filter else []
        return [write_items(items), f"FROM {source}", *where, *groups]

    def _write_join(self, definition: PipelineDefinition, sections: Sections) -> list[str]:
        join = definition.join_spec
        assert join is not None
        left, right = definition.input_parts
        key = [quote_name(column) for column in definition.key_fields or ()]
        items = ["*"]
        if join.take is not None:
            items = [*key, *(write_taken(name, path) for name, path in join.take)]
        words = {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}.get(join.how, join.how.upper())
        return [
            write_items(items),
            f"FROM {self._write_side(left)}",
            f"{words} JOIN {self._write_side(right)} USING ({', '.join(key)})",
            *([f"WINDOW {write_call(sections['window'])}"] if "window" in sections else []),
        ]

    def _write_side(self, part: PipelineDefinition) -> str:
        """Return a side of a join, under the name that its columns have."""
        source = self._write_part(part)
        name = quote_name(self._find_input_name(part))
        return source if source == name else f"{source} AS {name}"

    def _find_input_name(self, part: PipelineDefinition) -> str:
        if part.upstream and find_panes_input(part) is None:
            return self.stage_names[part.upstream[0].without_siblings()]
        if part.inputs:
            return describe_topic(part.inputs[0])[0]
        raise DefinitionError(
            "join", "a side has no name in SQL", "Name it as a stage, or write the join in YAML"
        )

    def _write_part(self, part: PipelineDefinition) -> str:
        return self._write_source(part, describe_sections(part).get("steps", []))

    def _write_source(self, definition: PipelineDefinition, steps: Sequence[StepForm]) -> str:
        """Return what a stage reads, after its steps: each step is a query of WITH."""
        source = self._write_input(definition)
        options = describe_deduplication(definition).get("deduplicate")
        if options is not None:
            source = write_table_function("deduplicate", source, None, options)
        for step in steps:
            query = write_step(step, source)
            name = next((known for known, text in self.queries.items() if text == query), "")
            if not name:
                name = self._choose_name(f"{step.keyword}_{len(self.queries) + 1}")
                self.queries[name] = query
            source = quote_name(name)
        return source

    def _choose_name(self, name: str) -> str:
        """Return a name that no stage has."""
        return self._choose_name(f"{name}_") if name in (*self.stage_names.values(), *self.queries) else name

    def _write_input(self, definition: PipelineDefinition) -> str:
        panes = find_panes_input(definition)
        if panes is not None:
            topic = panes.pop("topic")
            return write_table_function("read_panes", "", topic, panes)
        if definition.upstream:
            return unite([self._name_stage(each) for each in definition.upstream])
        if definition.input_parts:
            return unite([self._write_part(part) for part in definition.input_parts])
        topics = [describe_topic(each) for each in definition.inputs]
        return unite([f"{quote_name(topic)}{write_options(options)}" for topic, options in topics])


def _list_upstream(stage: PipelineDefinition) -> tuple[PipelineDefinition, ...]:
    return stage.upstream + tuple(each for part in stage.input_parts for each in part.upstream)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
