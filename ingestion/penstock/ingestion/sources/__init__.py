"""Sources of records. Each kind of source is one module, found by discovery.

To add a source:

1. Write a class that derives from `SourceKind` and `ReplayableSource`, or from `SourceKind` and
   `OneShotSource` if it cannot return a record twice. Set `kind` to its name, and `options` to its `SourceOption`s
   with help texts. The first line of the docstring is the summary in `penstock ingest --help`.
2. Implement `open(cls, context)`, which returns a source with `context.options`, and `read(self, position)`, which
   yields batches from a position on. An empty batch means that there is nothing at the moment.
3. Set `description` to a text that identifies the data. A ledger refuses a source with another description.
4. Test that reading at the position of a batch returns the same records again, byte for byte.

A class in this package is found by itself. A class of your own needs no installation: name it as `module:Class`
wherever a source is named. To give it a name, install an entry point of the group `penstock.sources`.

```python
class CounterSource(ReplayableSource, SourceKind):
    \"\"\"Numbers from 0 up to a limit.\"\"\"

    kind = "counter"
    options = (SourceOption("limit", "The number of records.", int, is_required=True),)

    def __init__(self, limit: int) -> None:
        self.description = f"counter up to {limit}"
        self._limit = limit

    @classmethod
    def open(cls, context: SourceContext) -> "CounterSource":
        return cls(context.options["limit"])

    def read(self, position: int | None) -> Iterator[SourceBatch]:
        for number in range(position or 0, self._limit):
            yield SourceBatch([b'{"number": %d}' % number], number)
```

`penstock ingest mypackage.mymodule:CounterSource --topic numbers --option limit=100` runs it.
"""

from penstock.ingestion.sources.generator_source import GeneratorSource
from penstock.ingestion.sources.source import EMPTY_BATCH, OneShotSource, RecordSource, ReplayableSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption

__all__ = [
    "EMPTY_BATCH",
    "GeneratorSource",
    "OneShotSource",
    "RecordSource",
    "ReplayableSource",
    "SourceContext",
    "SourceKind",
    "SourceOption",
]
