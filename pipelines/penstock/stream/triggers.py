"""Triggers of the public API: when a window emits panes. SEMANTICS.md defines each of them."""

from typing import TYPE_CHECKING, Any

from penstock.engine.triggers.after_all import after_all
from penstock.engine.triggers.after_any import after_any
from penstock.engine.triggers.after_count import after_count
from penstock.engine.triggers.after_each import after_each
from penstock.engine.triggers.after_processing_time import after_processing_time
from penstock.engine.triggers.after_punctuation import after_punctuation
from penstock.engine.triggers.after_watermark import after_watermark
from penstock.engine.triggers.default import default
from penstock.engine.triggers.every import every
from penstock.engine.triggers.or_finally import or_finally
from penstock.engine.triggers.repeatedly import repeatedly
from penstock.stream.keyword_registries import TRIGGER_KEYWORDS, find_added_keyword

__all__ = [
    "after_all",
    "after_any",
    "after_count",
    "after_each",
    "after_processing_time",
    "after_punctuation",
    "after_watermark",
    "default",
    "every",
    "or_finally",
    "repeatedly",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # type checkers must refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        return find_added_keyword(__name__, name, TRIGGER_KEYWORDS)
