"""Results drawn, as SVG: the panes of a key in event and processing time, and curves. Knows tables, not Spark."""

from penstock.pipelines.pictures.curves import Curve, Point, curves
from penstock.pipelines.pictures.panes import Scene, picture
from penstock.pipelines.pictures.scenes import Told, scene

__all__ = ["Curve", "Point", "Scene", "Told", "curves", "picture", "scene"]
