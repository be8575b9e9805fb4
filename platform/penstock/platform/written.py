"""What a stream is written in: the files that decide what it does, and when they were changed.

Nothing of what stands in them is run or checked: that is asked every half second of streams that are parked, and by
`penstock status`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.pipelines.own_modules import own_modules


def written_state(stream: str) -> str:
    """A word that is another one after any change of a file that may matter to whether the stream can run."""
    return " ".join(f"{path}@{changed}:{size}" for path, changed, size in _seen(_all_files(stream)))


def changed_since(stream: str, at_ms: int) -> Path | None:
    """A file of the pipeline, or of one's own that it imports, that was changed after a moment; None for none."""
    found = (path for path, changed, _ in _seen(own_modules(stream).values()) if changed > at_ms * 1_000_000)
    return next(found, None)


def _all_files(stream: str) -> Iterator[Path]:
    """The pipeline's own files, and every contract and suite: which of them it needs, a broken file cannot tell."""
    from penstock.ingestion.contracts import CATALOG
    from penstock.quality.expectations.suite import FOLDER

    yield from own_modules(stream).values()
    yield from CATALOG.glob("*.yaml")
    yield from FOLDER.glob("*/*.yaml")


def _seen(files: Iterable[Path]) -> Iterator[tuple[Path, int, int]]:
    for path in sorted(files):
        try:
            found = path.stat()
        except FileNotFoundError:
            continue
        yield path, found.st_mtime_ns, found.st_size
