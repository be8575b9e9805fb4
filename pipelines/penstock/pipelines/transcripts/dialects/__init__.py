"""Rerun answers that were written down in another schema, said again in `anchor-transcript/1`.

Which schema a case is in is seen from the case itself: it may stand in a document, a list or a line of its own.
"""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.dialects import assignments, flink, spl
from penstock.pipelines.transcripts.form import name_of, told

Node = Mapping[str, Any]


def translated(case: Node) -> Node:
    """Return the case in the schema; one that cannot be said there keeps its id, and says why."""
    try:
        return said_again(case)
    except TranscriptError as problem:
        return {"id": name_of(case), "cannot": str(problem)}
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        return {"id": name_of(case), "broken": told(problem)}


def said_again(case: Node) -> Node:
    """Return the case as whoever knows its schema says it."""
    if flink.speaks(case):
        return flink.translated(case)
    if spl.speaks(case):
        return spl.translated(case)
    if assignments.speaks(case):
        return assignments.translated(case)
    return flink.reworded(case)
