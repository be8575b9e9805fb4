"""Rerun answers that were written down in another schema, said again in `anchor-transcript/1`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.dialects import assignments, flink, spl
from penstock.pipelines.transcripts.form import told

Node = Mapping[str, Any]


def translated(document: Node, cases: Iterable[Any]) -> Iterator[Any]:
    """Yield each case in the schema; one that cannot be said there keeps its id, and says why."""
    say = dialect_of(str(document.get("schema", "")))
    for case in cases:
        if not isinstance(case, Mapping):
            yield case
            continue
        translate = say or (flink.translated if flink.speaks(case) else as_it_is)
        try:
            yield translate(case)
        except TranscriptError as problem:
            yield {"id": case.get("id"), "cannot": str(problem)}
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            yield {"id": case.get("id"), "broken": told(problem)}


def dialect_of(schema: str) -> Callable[[Node], Node] | None:
    """Return what translates the cases of a schema, if it is another one."""
    match schema.split("/")[0]:
        case "anchor-policy-windows":
            return spl.translated
        case "anchor-assignment":
            return assignments.translated
        case _:
            return None


def as_it_is(case: Node) -> Node:
    """Return a case that is in the schema."""
    return case
