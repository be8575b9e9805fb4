"""SVG diagrams of results: the panes of a key in event and processing time, and curves. Independent of Spark."""

from penstock.engine.diagrams.curve_chart import Curve, CurvePoint, render_curves
from penstock.engine.diagrams.embedded_drawing import EmbeddedDrawing
from penstock.engine.diagrams.pane_diagram import (
    DiagramScene,
    DrawnPane,
    PlotArea,
    draw_scene,
    render_pane_diagram,
)
from penstock.engine.diagrams.scene_builder import StageRunData, build_scene

__all__ = [
    "Curve",
    "CurvePoint",
    "DiagramScene",
    "DrawnPane",
    "EmbeddedDrawing",
    "PlotArea",
    "StageRunData",
    "build_scene",
    "draw_scene",
    "render_curves",
    "render_pane_diagram",
]
