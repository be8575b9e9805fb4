"""Seeded, reproducible records for demonstrations, tests and benchmarks."""

from penstock.ingestion.generators.blocks import Generator, Times, evenly
from penstock.ingestion.generators.sensors import Sensors

__all__ = ["Generator", "Sensors", "Times", "evenly"]
