"""Kinds of sources: the base class through which a source declares its name, its options and how it opens."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from penstock.core.clock import Clock
from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.producer.record_serde import RecordSerde
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.source import RecordSource


def parse_positive_number(text: str) -> float:
    """Return a number above 0; raise ValueError for any other text."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError("use a number above 0")
    return number


def parse_share(text: str) -> float:
    """Return a number from 0 to 1; raise ValueError for any other text."""
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError("use a number from 0 to 1")
    return share


@dataclass(frozen=True, slots=True)
class SourceOption:
    """An option of a source: `--max-delay 30s` on the command line, `max_delay: 30s` in a configuration.

    `parse` converts a text and raises ValueError or DurationError if it is invalid. A flag has no value.
    """

    name: str
    help: str
    parse: Callable[[str], Any] = str
    is_flag: bool = False
    is_required: bool = False

    @property
    def flag_name(self) -> str:
        """The name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def convert(self, value: Any) -> Any:
        """Return the value of the option; raise SourceOptionsError if a text cannot be parsed."""
        if not isinstance(value, str) or self.is_flag:
            return bool(value) if self.is_flag else value
        try:
            return self.parse(value)
        except (ValueError, DurationError) as error:
            raise SourceOptionsError(f"Option {self.flag_name}: {value!r} is invalid: {error}") from None


def duration_option(name: str, help_text: str) -> SourceOption:
    """Return an option whose value is a duration, in milliseconds."""
    return SourceOption(name, help_text, parse_duration_ms)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source is opened with: the contract and format of its records, the clock, and its options.

    `index_path` is a file in which a source can store state that belongs to the producer.
    """

    contract: Contract
    record_format: RecordSerde
    clock: Clock
    options: Mapping[str, Any] = field(default_factory=dict)
    index_path: Path | None = None

    @property
    def row_reader(self) -> RowReader:
        """Converts rows to records of the contract."""
        return RowReader(self.contract, self.record_format.encode)

    def resolve_path(self) -> Path:
        """Return the absolute path: the description of a source, by which a ledger identifies it, contains it."""
        return Path(self.options["path"]).absolute()

    def parse_address(self) -> tuple[str, int]:
        """Return host and port of the address."""
        return parse_address(self.options["address"])


class SourceKind(ABC):
    """A kind of source. The first line of the docstring of a subclass is its summary in help texts.

    `location` names the option that says where the records come from; its value is part of the producer's name.
    """

    kind: ClassVar[str] = ""
    options: ClassVar[tuple[SourceOption, ...]] = ()
    location: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source with these options; raise SourceOptionsError if they are wrong."""

    @classmethod
    def summarize(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def default_producer_name(cls, topic: str, options: Mapping[str, Any]) -> str:
        """Return the producer name that the same source with the same options always gets."""
        location = str(options.get(cls.location, "")).rstrip("/").rpartition("/")[2]
        slugs = (re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in (cls.kind, location))
        return "-".join([topic, *filter(None, slugs)])

    @classmethod
    def convert_options(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parsed options; refuse unknown and missing ones."""
        known_options = {option.name: option for option in cls.options}
        for name, value in values.items():
            if name not in known_options:
                allowed = ", ".join(option.flag_name for option in cls.options) or "none"
                raise SourceOptionsError(
                    f"Source '{cls.kind}' has no option --{name.replace('_', '-')} ({value}). Options: {allowed}."
                )
        for option in cls.options:
            if option.is_required and not values.get(option.name):
                raise SourceOptionsError(
                    f"Source '{cls.kind}' needs the option {option.flag_name}: {option.help}"
                )
        return {name: known_options[name].convert(value) for name, value in values.items()}


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`; the host defaults to this machine."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise SourceOptionsError(f"'{address}' is not an address. Use host:port, such as 127.0.0.1:9999.")
    return host or "127.0.0.1", int(port)
