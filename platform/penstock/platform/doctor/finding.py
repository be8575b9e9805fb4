"""One thing that was looked at."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.infra.errors import InfraError
from penstock.ingestion.errors import IngestionError
from penstock.pipelines.errors import PipelineError
from penstock.platform.errors import PlatformError


@dataclass(frozen=True)
class Finding:
    """What was looked at, whether it is as it should be, and what was seen; a fault says the way out."""

    what: str
    ok: bool
    detail: str


def look(what: str, see: Callable[[], str]) -> Finding:
    """Turn an error of ours into a finding: its sentence already says what to do."""
    try:
        return Finding(what, True, see())
    except (InfraError, IngestionError, PipelineError, PlatformError) as error:
        return Finding(what, False, str(error))
