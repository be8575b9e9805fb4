"""The account of a stream as a flow: from the records that were read to what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.platform.console.stream_view import Fate

WIDTH, HEIGHT = 360.0, 190.0
NODE_WIDTH = 10.0
GAP = 9.0
"""The space between the ends of two bands."""
MIN_THICKNESS = 1.5
"""A band of few records stays visible."""


@dataclass(frozen=True)
class FlowBand:
    """The band of one fate: its shape, and its end on the right side."""

    name: str
    path: str
    end_y: float
    thickness: float


@dataclass(frozen=True)
class AccountFlow:
    """The bands of a flow, in the order of the fates, and the size of the drawing."""

    bands: Sequence[FlowBand]
    width: float = WIDTH
    height: float = HEIGHT
    node_width: float = NODE_WIDTH


def lay_out_flow(read: int, fates: Sequence[Fate]) -> AccountFlow:
    """Return a band for each fate that has records, as thick as its share of what was read."""
    present = [fate for fate in fates if fate.records]
    if not read or not present:
        return AccountFlow(())
    room = HEIGHT - GAP * (len(present) - 1) - MIN_THICKNESS * len(present)
    start_y = (HEIGHT - room - MIN_THICKNESS * len(present)) / 2
    end_y, bands = 0.0, []
    for fate in present:
        thickness = MIN_THICKNESS + room * fate.records / read
        bands.append(FlowBand(fate.name, _draw_band(start_y, end_y, thickness), end_y, thickness))
        start_y += thickness
        end_y += thickness + GAP
    return AccountFlow(tuple(bands))


def _draw_band(start_y: float, end_y: float, thickness: float) -> str:
    left, right = NODE_WIDTH, WIDTH - NODE_WIDTH
    middle = (left + right) / 2
    upper = f"M{left:.1f} {start_y:.1f}C{middle:.1f} {start_y:.1f} {middle:.1f} {end_y:.1f} {right:.1f} {end_y:.1f}"
    low_start, low_end = start_y + thickness, end_y + thickness
    lower = f"C{middle:.1f} {low_end:.1f} {middle:.1f} {low_start:.1f} {left:.1f} {low_start:.1f}"
    return f"{upper}V{low_end:.1f}{lower}Z"
