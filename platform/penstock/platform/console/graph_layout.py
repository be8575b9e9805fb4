"""Where the graph of the overview has its nodes and edges: three columns, and ports that keep edges apart."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.platform.console.formats import format_rate
from penstock.platform.console.stack_graph import GraphEdge, GraphNode, StackGraph

NODE_WIDTH, NODE_HEIGHT, ROW_HEIGHT = 250.0, 34.0, 48.0
COLUMN_GAP = 175.0
MARGIN_TOP = 30.0
PORT_GAP = 13.0
MAX_NAME_LENGTH = 30
MAX_EDGE_WIDTH = 5.0


@dataclass(frozen=True)
class PlacedNode:
    """A node with its upper left corner."""

    node: GraphNode
    x: float
    y: float

    @property
    def shown_name(self) -> str:
        """The name, shortened to the width of the node."""
        name = self.node.name
        return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


@dataclass(frozen=True)
class PlacedEdge:
    """An edge as a path, with its width and the text at its end."""

    edge: GraphEdge
    path: str
    width: float
    label: str
    label_x: float
    label_y: float


@dataclass(frozen=True)
class GraphLayout:
    """A graph with positions, and its size."""

    nodes: Sequence[PlacedNode]
    edges: Sequence[PlacedEdge]
    width: float
    height: float
    headings: Sequence[tuple[float, str]]


def lay_out_graph(graph: StackGraph) -> GraphLayout:
    """Place streams in their order, and topics and tables beside the streams that they belong to."""
    columns = [0.0, NODE_WIDTH + COLUMN_GAP, 2 * (NODE_WIDTH + COLUMN_GAP)]
    streams = {node.id: MARGIN_TOP + number * ROW_HEIGHT for number, node in enumerate(graph.streams)}
    tops = {
        **streams,
        **_spread(graph.topics, _neighbours(graph.edges, to_end=False), streams),
        **_spread(graph.tables, _neighbours(graph.edges, to_end=True), streams),
    }
    column_of = {"topic": columns[0], "stream": columns[1], "table": columns[2]}
    nodes = [
        PlacedNode(node, column_of[node.kind], tops[node.id])
        for node in (*graph.topics, *graph.streams, *graph.tables)
    ]
    height = max(tops.values(), default=0) + NODE_HEIGHT + 6
    headings = list(zip(columns, ("Topics", "Streams", "Tables and topics"), strict=True))
    return GraphLayout(
        nodes, _place_edges(graph.edges, nodes), columns[2] + NODE_WIDTH, height, headings if nodes else []
    )


def _neighbours(edges: Sequence[GraphEdge], *, to_end: bool) -> Mapping[str, list[str]]:
    """Return the streams of each node at one end of the edges."""
    neighbours: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        node, stream = (edge.end, edge.start) if to_end else (edge.start, edge.end)
        neighbours[node].append(stream)
    return neighbours


def _spread(
    nodes: Sequence[GraphNode], neighbours: Mapping[str, list[str]], streams: Mapping[str, float]
) -> dict[str, float]:
    """Return the top of each node: as near to the middle of its streams as the others leave room."""

    def middle(node: GraphNode) -> float:
        tops = [streams[name] for name in neighbours.get(node.id, ()) if name in streams]
        return sum(tops) / len(tops) if tops else MARGIN_TOP

    tops: dict[str, float] = {}
    next_free = MARGIN_TOP
    for node in sorted(nodes, key=middle):
        tops[node.id] = max(middle(node) if len(nodes) < len(streams) else MARGIN_TOP, next_free)
        next_free = tops[node.id] + ROW_HEIGHT
    return tops


def _place_edges(edges: Sequence[GraphEdge], nodes: Sequence[PlacedNode]) -> list[PlacedEdge]:
    places = {placed.node.id: placed for placed in nodes}
    arriving = _count_ports([edge.end for edge in edges])
    leaving = _count_ports([edge.start for edge in edges])
    return [
        _place_edge(edge, places, leaving[number], arriving[number])
        for number, edge in enumerate(edges)
        if edge.start in places and edge.end in places
    ]


def _count_ports(node_ids: Sequence[str]) -> list[float]:
    """Return the offset of each edge at its node, so that edges of one node do not share a port."""
    totals: defaultdict[str, int] = defaultdict(int)
    numbers = []
    for node_id in node_ids:
        numbers.append(totals[node_id])
        totals[node_id] += 1
    return [
        (number - (totals[node_id] - 1) / 2) * min(PORT_GAP, (NODE_HEIGHT - 6) / totals[node_id])
        for node_id, number in zip(node_ids, numbers, strict=True)
    ]


def _place_edge(
    edge: GraphEdge, places: Mapping[str, PlacedNode], start_offset: float, end_offset: float
) -> PlacedEdge:
    start, end = places[edge.start], places[edge.end]
    x1, y1 = start.x + NODE_WIDTH, start.y + NODE_HEIGHT / 2 + start_offset
    x2, y2 = end.x, end.y + NODE_HEIGHT / 2 + end_offset
    bend = (x2 - x1) / 2
    path = f"M{x1:.1f},{y1:.1f} C{x1 + bend:.1f},{y1:.1f} {x2 - bend:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    rate = edge.per_second or 0
    width = min(1.2 + 0.8 * math.log10(1 + rate), MAX_EDGE_WIDTH)
    label = format_rate(edge.per_second) if rate else ""
    label_y = y2 + 13 if y1 < y2 - PORT_GAP else y2 - 5  # on the side that the edge does not come from
    return PlacedEdge(edge, path, round(width, 1), label, x2 - 8, label_y)
