"""Opening a source by name, as the command line and Dagster do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceError
from penstock.ingestion.generators import Generator, Sensors
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.checking import Encode
from penstock.ingestion.sources.generated import Generated
from penstock.ingestion.sources.source import Source


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a source may be told. `rate` is in records per second; None is as fast as can be."""

    seed: int = 0
    rate: float | None = None
    encode: Encode | None = None


Opener = Callable[[Contract, Clock, SourceOptions], Source]
_GENERATORS: Mapping[str, Callable[[int], Generator]] = {"sensors": Sensors}


def source_kinds() -> tuple[str, ...]:
    """Return the names that `open_source` knows, sorted."""
    return tuple(sorted(_OPENERS))


def open_source(kind: str, contract: Contract, clock: Clock, options: SourceOptions) -> Source:
    """Return a source of a kind whose records are of a contract."""
    if kind not in _OPENERS:
        raise SourceError(f"there is no source '{kind}'; there are {', '.join(source_kinds())}")
    return _OPENERS[kind](contract, clock, options)


def _generated(make: Callable[[int], Generator]) -> Opener:
    def opener(contract: Contract, clock: Clock, options: SourceOptions) -> Source:
        return Generated(make(options.seed), contract, clock, rate=options.rate, encode=options.encode)

    return opener


_OPENERS: Mapping[str, Opener] = {name: _generated(make) for name, make in _GENERATORS.items()}
