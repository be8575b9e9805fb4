"""Windows of the public API, and the policies of order windows: the keywords of `penstock.engine.windows`."""

from typing import TYPE_CHECKING, Any

from penstock.engine.windows.as_of import as_of
from penstock.engine.windows.between import between
from penstock.engine.windows.calendar import calendar
from penstock.engine.windows.count_policy import records
from penstock.engine.windows.delta_policy import delta
from penstock.engine.windows.fixed import fixed
from penstock.engine.windows.global_window import global_window
from penstock.engine.windows.punctuation_policy import punctuation
from penstock.engine.windows.same_windows import same_windows
from penstock.engine.windows.sessions import sessions
from penstock.engine.windows.sliding import sliding
from penstock.engine.windows.sliding_order import sliding_by
from penstock.engine.windows.time_policy import elapsed
from penstock.engine.windows.tumbling import tumbling
from penstock.stream.keyword_registries import POLICY_KEYWORDS, WINDOW_KEYWORDS, find_added_keyword

__all__ = [
    "as_of",
    "between",
    "calendar",
    "delta",
    "elapsed",
    "fixed",
    "global_window",
    "punctuation",
    "records",
    "same_windows",
    "sessions",
    "sliding",
    "sliding_by",
    "tumbling",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # type checkers must refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        return find_added_keyword(__name__, name, WINDOW_KEYWORDS, POLICY_KEYWORDS)
