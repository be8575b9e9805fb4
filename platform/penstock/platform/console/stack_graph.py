"""The graph of the overview: topics, the streams that read them, and the tables and topics that these write."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.platform.console.stream_ends import StreamEnds
from penstock.platform.console.stream_table import StreamRow, Tone
from penstock.platform.control.recent_flows import StreamFlow

MAX_STREAMS = 24
"""A graph of more streams cannot be read; a search narrows it down."""

NodeKind = Literal["topic", "stream", "table"]


@dataclass(frozen=True)
class GraphNode:
    """A topic, stream or table. `figure` is what is said of it beside its name."""

    kind: NodeKind
    name: str
    url: str = ""
    tone: Tone = "idle"
    state: str = ""

    @property
    def id(self) -> str:
        """The identity of the node in its graph."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class GraphEdge:
    """What flows from one node to another, in records or rows per second; None if nothing runs."""

    start: str
    end: str
    per_second: float | None


@dataclass(frozen=True)
class StackGraph:
    """The nodes by column, and the edges between them. `left_out` counts streams that are not drawn."""

    topics: Sequence[GraphNode]
    streams: Sequence[GraphNode]
    tables: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    left_out: int = 0


def build_stack_graph(
    rows: Sequence[StreamRow], ends: Mapping[str, StreamEnds], flows: Mapping[str, StreamFlow]
) -> StackGraph:
    """Return the graph of the first streams of a table."""
    shown = rows[:MAX_STREAMS]
    edges = [edge for row in shown for edge in _iter_edges(row, ends[row.name], flows.get(row.name))]
    topics = _unique(f"{topic}" for row in shown for topic in ends[row.name].topics)
    outputs = _unique(output for row in shown for output in ends[row.name].outputs)
    return StackGraph(
        [GraphNode("topic", topic, f"/topics/{topic}") for topic in topics],
        [GraphNode("stream", row.name, f"/streams/{row.name}", row.tone, row.state) for row in shown],
        [GraphNode("table", output, f"/tables/{output}") for output in outputs],
        edges,
        len(rows) - len(shown),
    )


def _iter_edges(row: StreamRow, ends: StreamEnds, flow: StreamFlow | None) -> Iterable[GraphEdge]:
    stream_id = f"stream:{row.name}"
    for topic in ends.topics:
        per_second = None if flow is None else flow.records_per_second(topic)
        yield GraphEdge(f"topic:{topic}", stream_id, per_second)
    for output in ends.outputs:
        yield GraphEdge(stream_id, f"table:{output}", None if flow is None else flow.rows_per_second(output))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
