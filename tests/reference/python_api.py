"""The reference page of the Python API, made from signatures and docstrings.

`python -m tests.reference.python_api` writes it. A test compares it with the code.
"""

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc, isfunction, signature
from pathlib import Path
from typing import Any, get_args

from penstock import stream
from penstock.stream import Pipeline, types
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    POLICY_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
)

PAGE = Path(__file__).parents[2] / "pipelines/docs/python-api.md"
INTRODUCTION = """# The Python API
`from penstock.stream import …` has everything on this page. [Writing a pipeline](../penstock/stream/README.md)
shows how the parts go together, [SEMANTICS](../SEMANTICS.md) defines them. The page is made from the code by
`python -m tests.reference.python_api`.

A duration is text such as `10s`, `1h30m` or `10 seconds`, a `timedelta`, or a number of milliseconds. Types for
annotations are in `penstock.stream.types`."""
MAX_SIGNATURE_LENGTH = 100
KEYWORD_SECTIONS = {
    "Aggregates": AGGREGATE_KEYWORDS,
    "Windows": WINDOW_KEYWORDS,
    "Policies of order windows": POLICY_KEYWORDS,
    "Triggers": TRIGGER_KEYWORDS,
}

_MODULE_PREFIX = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")
_SECTION = re.compile(r"^(Args|Example|Not promised):\s*(.*)$")


def list_sections() -> dict[str, list[Callable[..., Any]]]:
    """Return the functions of each section of the page."""
    sections = {
        "Inputs": [stream.read, stream.union, stream.join, stream.read_panes],
        "Files": [stream.from_yaml, stream.from_sql, stream.from_document],
        "Methods of a pipeline": list_methods(),
    }
    for title, registry in KEYWORD_SECTIONS.items():
        functions = registry.kinds_by_name.values()
        sections[title] = [function for function in functions if function.__module__.startswith("penstock.")]
    sections["Aggregates"].append(stream.combine)
    return sections


def list_methods() -> list[Callable[..., Any]]:
    """Return the public methods of a pipeline, in the order of the source."""
    classes = [part for part in reversed(Pipeline.__mro__) if part.__module__.startswith("penstock.")]
    return [
        member
        for part in classes
        for name, member in vars(part).items()
        if isfunction(member) and not name.startswith("_")
    ]


def write_page() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for title, functions in list_sections().items():
        parts.append(f"## {title}")
        parts += ["\n".join(write_function(function)) for function in functions]
    parts += [
        "## Types\nFor annotations: `from penstock.stream.types import Trigger`.\n\n| type | is |\n|---|---|"
    ]
    parts[-1] += "".join(f"\n| `{name}` | {describe_type(getattr(types, name))} |" for name in types.__all__)
    return "\n\n".join(parts) + "\n"


def write_function(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the lines of a function: its signature and its docstring."""
    yield f"### {function.__name__}"
    yield f"```\n{function.__name__}{format_signature(function)}\n```"
    section = ""
    for line in cleandoc(function.__doc__ or "").splitlines():
        heading = _SECTION.match(line)
        if section == "Example" and (heading or not line.startswith(" ")):
            yield "```"
            section = ""
        if heading and heading[1] == "Example":
            section = "Example"
            yield "```python"
        elif heading and heading[1] == "Args":
            section = "Args"
        elif heading:
            section = ""
            yield f"*{heading[1]}*: {heading[2]}"
        elif section == "Args" and (argument := re.match(r" {4}(\w+): (.*)", line)):
            yield f"- `{argument[1]}`: {argument[2]}"
        elif section == "Args" and line.startswith("        "):
            yield f"  {line.strip()}"
        else:
            yield line.removeprefix("    ")
    if section == "Example":
        yield "```"


def format_signature(function: Callable[..., Any]) -> str:
    """Return a signature with short names of types, as in `(size: Duration, offset: Duration = 0) -> Fixed`."""
    text = _MODULE_PREFIX.sub("", str(signature(function))).replace("'", '"')
    text = text.replace("str | int | timedelta", "Duration").replace(
        "str | int | datetime.timedelta", "Duration"
    )
    for name, words in list_word_types():
        text = text.replace(words, name)
    text = re.sub(r"\(self(?:, )?", "(", text)
    text = re.sub(r'"(Pipeline|Callable[^"]*|SinkMode[^"]*)"', r"\1", text)
    return wrap_signature(text)


def wrap_signature(text: str) -> str:
    """Return a long signature with a line for each parameter."""
    if len(text) <= MAX_SIGNATURE_LENGTH:
        return text
    parameters, _, result = text[1:].rpartition(") -> ")
    lines, depth = [""], 0
    for character in parameters:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            lines.append("")
        else:
            lines[-1] += character
    return "\n".join(["(", *(f"    {line.strip()}," for line in lines), f") -> {result}"])


def list_word_types() -> list[tuple[str, str]]:
    """Return the names of types that are lists of words, and how a signature prints them."""
    printed = {}
    for name in types.__all__:
        words = get_args(getattr(types, name))
        if words and all(isinstance(word, str) for word in words):
            printed[name] = "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"
    return list(printed.items())


def describe_type(kind: Any) -> str:
    """Return the words of a type, or the first line of the docstring of a class."""
    words = get_args(kind)
    if words:
        return ", ".join(f"`{word}`" if isinstance(word, str) else f"`{word.__name__}`" for word in words)
    return cleandoc(kind.__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    PAGE.write_text(write_page(), "utf-8")
