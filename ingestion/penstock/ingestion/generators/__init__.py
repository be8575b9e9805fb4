"""Seeded, reproducible record generators for demos, tests and benchmarks. Each generator is one class.

`GENERATORS` has every class with a `topic` that a module of this package defines.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from penstock.ingestion.generators.generator import RecordGenerator, SendTimes, make_even_send_times
from penstock.ingestion.generators.seeded_generator import SeededGenerator
from penstock.ingestion.generators.sensors import SensorGenerator

__all__ = ["GENERATORS", "RecordGenerator", "SendTimes", "SensorGenerator", "make_even_send_times"]


def _discover_generators() -> Iterator[tuple[str, Callable[[int], RecordGenerator]]]:
    for module_info in iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for member in vars(module).values():
            if isinstance(member, type) and issubclass(member, SeededGenerator) and member.kind:
                yield member.topic, member


GENERATORS: Mapping[str, Callable[[int], RecordGenerator]] = dict(_discover_generators())
