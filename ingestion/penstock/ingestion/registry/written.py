"""By which schemas the records of a topic were written, for whoever reads the topic for months."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from penstock.ingestion.contracts.model import Field
from penstock.ingestion.contracts.readable import readable_fields
from penstock.ingestion.contracts.schemas import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.registry import Registry, subject_of_topic


class Written(NamedTuple):
    """The schemas that a reader can read, by id. With `trouble` the registry did not answer: there may be more."""

    schemas: Mapping[int, Schema]
    trouble: str = ""


class WrittenSchemas:
    """Asks the registry each time, for a producer may have registered a schema since.

    One that does not answer is no reason to stop as long as records are of schemas that it told of before; that
    is for the caller to see, by `trouble`. Before the first answer it raises RegistryError.
    """

    def __init__(self, registry: Callable[[], Registry]) -> None:
        self._open = registry
        self._registry: Registry | None = None
        self._known: dict[str, dict[int, Schema]] = {}

    def of(self, topic: str, reader: Sequence[Field]) -> Written:
        """Return the schemas of a topic that a reader with these fields can read."""
        trouble = ""
        try:
            self._known[topic] = self._asked(topic)
        except RegistryError as error:
            if topic not in self._known:
                raise
            trouble = str(error)
        found = self._known[topic].items()
        fits = {
            number: schema for number, schema in found if readable_fields(schema, topic, reader) is not None
        }
        return Written(fits, trouble)

    def _asked(self, topic: str) -> dict[int, Schema]:
        if self._registry is None:
            self._registry = self._open()
        return {each.id: each.schema for each in self._registry.versions(subject_of_topic(topic))}
