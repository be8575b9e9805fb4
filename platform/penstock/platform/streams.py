"""Which streams there are: the pipelines of the catalog, and an archive for each topic."""

from penstock.pipelines import catalog
from penstock.pipelines.archive.names import archive_names


def stream_names() -> tuple[str, ...]:
    """Every stream that a host can run, pipelines first."""
    return (*catalog.names(), *archive_names())
