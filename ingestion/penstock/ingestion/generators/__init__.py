"""Seeded, reproducible record generators for demos, tests and benchmarks. Each generator is one class.

`GENERATORS` has every class with a `topic` that a module of this package defines.
"""

from collections.abc import Callable, Iterator, Mapping

from penstock.core.imports import import_package_modules
from penstock.ingestion.generators.generator import RecordGenerator, SendTimes, make_even_send_times
from penstock.ingestion.generators.seeded_generator import SeededGenerator
from penstock.ingestion.generators.sensors import SensorGenerator

__all__ = ["GENERATORS", "RecordGenerator", "SendTimes", "SensorGenerator", "make_even_send_times"]


def _discover_generators() -> Iterator[tuple[str, Callable[[int], RecordGenerator]]]:
    for module in import_package_modules(__name__):
        for member in vars(module).values():
            if isinstance(member, type) and issubclass(member, SeededGenerator) and member.kind:
                yield member.topic, member


GENERATORS: Mapping[str, Callable[[int], RecordGenerator]] = dict(_discover_generators())
