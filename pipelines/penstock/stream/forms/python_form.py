"""A pipeline as Python: a module with one variable for each stage."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from keyword import iskeyword
from typing import Any

from penstock import stream
from penstock.stream.forms.kind_calls import KindCall
from penstock.stream.forms.python_text import assign, quote, write_named
from penstock.stream.forms.sections import describe_sections, describe_topic, find_panes_input
from penstock.stream.forms.steps import StepForm
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.plan_builder import iter_outputs, name_stages

API_MODULE = "penstock.stream"
Arguments = Sequence[str]


def format_as_python(name: str, definition: PipelineDefinition) -> str:
    """Return a pipeline as the text of a Python file."""
    return _PythonWriter(name, name_stages(name, definition)).write(tuple(iter_outputs(definition)))


@dataclass
class _PythonWriter:
    name: str
    stage_names: dict[PipelineDefinition, str]
    variables: dict[PipelineDefinition, str] = field(default_factory=dict)
    assignments: list[str] = field(default_factory=list)
    imports: dict[str, set[str]] = field(default_factory=dict)

    def write(self, outputs: Sequence[PipelineDefinition]) -> str:
        """Return the module. The variable of the pipeline is the last one."""
        main, *others = outputs
        other_variables = [self._name_stage(output) for output in others]
        calls = self._write_stage(main)
        calls += [f"also({', '.join(other_variables)})"] if other_variables else []
        self.assignments.append(assign(self.name, calls))
        imports = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        return "\n".join([*imports, "", *self.assignments, ""])

    def _name_stage(self, definition: PipelineDefinition) -> str:
        """Return the variable of a stage, and assign it first."""
        stage = definition.without_siblings()
        if stage not in self.variables:
            calls = self._write_stage(stage)
            self.variables[stage] = self._choose_variable(self.stage_names[stage])
            self.assignments.append(assign(self.variables[stage], calls))
        return self.variables[stage]

    def _choose_variable(self, name: str) -> str:
        """Return a variable like a name, which means nothing else in the module."""
        used_names = {self.name, *self.variables.values(), *stream.__all__}
        variable = name if name.isidentifier() and not iskeyword(name) else f"stage_{len(self.variables) + 1}"
        while variable in used_names:
            variable += "_stage"
        return variable

    def _import(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name

    def _write_stage(self, definition: PipelineDefinition) -> list[str]:
        """Return the calls of a chain, the input first."""
        sections = describe_sections(definition)
        return [
            *self._write_input(definition),
            *(call for name, value in sections.items() for call in self._write_section(name, value)),
        ]

    def _write_input(self, definition: PipelineDefinition) -> list[str]:
        panes = find_panes_input(definition)
        if panes is not None:
            return [self._call_api("read_panes", [quote(panes.pop("topic"))], panes)]
        if definition.upstream:
            first, *others = [self._name_stage(each) for each in definition.upstream]
            return [first, f"then({', '.join(others)})"]
        if definition.join_spec is not None:
            return [self._write_join(definition)]
        if definition.input_parts:
            parts = [self._write_part(part) for part in definition.input_parts]
            return [self._call_api("union", parts, {})]
        topics = [describe_topic(each) for each in definition.inputs]
        return [self._call_api("read", [quote(topic) for topic, _ in topics], topics[0][1])]

    def _write_join(self, definition: PipelineDefinition) -> str:
        join, key = definition.join_spec, list(definition.key_fields or ())
        options: dict[str, Any] = {"by": key[0] if len(key) == 1 else key}
        if join is not None and join.how != "inner":
            options["how"] = join.how
        if join is not None and join.take is not None:
            options["take"] = dict(join.take)
        return self._call_api("join", [self._write_part(part) for part in definition.input_parts], options)

    def _write_part(self, part: PipelineDefinition) -> str:
        """Return an input of a union or join: a stage by its variable, any other one in place."""
        is_stage = len(part.upstream) == 1 and find_panes_input(part) is None and not part.steps
        return self._name_stage(part.upstream[0]) if is_stage else ".".join(self._write_stage(part))

    def _write_section(self, name: str, value: Any) -> list[str]:
        match name:
            case "steps":
                return [self._write_step(step) for step in value]
            case "key":
                return [f"key({', '.join(map(quote, value))})"]
            case "aggregate" if all(column.isidentifier() and not iskeyword(column) for column in value):
                columns = [f"{column}={self._write_value(call)}" for column, call in value.items()]
                return [f"aggregate({', '.join(columns)})"] if columns else []
            case "aggregate":
                columns = [f"{column!r}: {self._write_value(call)}" for column, call in value.items()]
                return [f"aggregate(**{{{', '.join(columns)}}})"]
            case "stateful":
                return [self._write_stateful(dict(value))]
            case "trigger":
                options = dict(value)
                trigger = options.pop("trigger", None)
                return [
                    self._call("trigger", [] if trigger is None else [self._write_value(trigger)], options)
                ]
            case "write":
                return [self._write_sink(call) for call in value]
            case "publish":
                return [f"publish({quote(topic)})" for topic in value]
            case "deduplicate":
                return [self._call("deduplicate", [], value)]
            case "name":
                return [f"named({quote(value)})"]
        return [f"{name}({self._write_value(value)})"]

    def _write_step(self, step: StepForm) -> str:
        if step.is_function:
            return self._call(step.keyword, [self._import_reference(step.value)], step.options)
        if step.value is None:
            return self._call(step.keyword, [], step.options)
        if step.keyword == "select":
            return self._write_select(step.value)
        return f"{step.keyword}({quote(step.value)})"

    def _write_select(self, columns: list[str | dict[str, str]]) -> str:
        """Return a select: names first, then new names with their columns, from the first new name on."""
        plain = list(takewhile(lambda column: isinstance(column, str), columns))
        named: dict[str, str] = {}
        for column in columns[len(plain) :]:
            named |= {column: column} if isinstance(column, str) else column
        arguments = [quote(str(column)) for column in plain]
        return f"select({', '.join([*arguments, *write_named(named)])})"

    def _write_stateful(self, options: dict[str, Any]) -> str:
        function = self._import_reference(options.pop("function"))
        state = self._import_reference(options.pop("state"))
        described = self._call("stateful", [function], options)
        return described.replace(f"({function}, ", f"({function}, state={state}, ", 1)

    def _write_sink(self, call: KindCall) -> str:
        mode = {} if call.keyword == "latest" else {"mode": call.keyword}
        return self._call(
            "write", [self._write_value(value) for value in call.positional], {**mode, **call.named}
        )

    def _import_reference(self, reference: str) -> str:
        module, _, name = reference.partition(":")
        return f"{self._import(module, name.partition('.')[0])}{name[len(name.partition('.')[0]) :]}"

    def _call_api(self, function: str, arguments: Arguments, options: dict[str, Any]) -> str:
        return self._call(self._import(API_MODULE, function), arguments, options)

    def _call(self, function: str, arguments: Arguments, options: dict[str, Any]) -> str:
        named = [f"{name}={self._write_value(value)}" for name, value in options.items()]
        return f"{function}({', '.join([*arguments, *named])})"

    def _write_value(self, value: Any) -> str:
        """Return a value: the call of a keyword's function, or a constant."""
        if isinstance(value, KindCall):
            name = value.function.__name__
            module = API_MODULE if name in stream.__all__ else value.function.__module__
            return self._call(
                self._import(module, name),
                [self._write_value(each) for each in value.positional],
                value.named,
            )
        return quote(value)
