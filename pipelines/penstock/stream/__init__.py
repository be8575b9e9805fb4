"""The public API to define pipelines in Python, `from_yaml` for YAML and `from_sql` for SQL. All give one plan.

A window, trigger or aggregate that another package installs with an entry point is an attribute here, too. For type
checkers and completion, import it from its own module. `penstock.stream.types` has the types for annotations.
"""

from typing import TYPE_CHECKING, Any

from penstock.stream.aggregates import (
    collect,
    combine,
    count,
    distinct,
    first,
    last,
    max_,
    mean,
    min_,
    of,
    quantiles,
    sum_,
    top,
)
from penstock.stream.inputs import join, read, read_panes, union
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    POLICY_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
    find_added_keyword,
)
from penstock.stream.pipeline import Pipeline
from penstock.stream.sql_files import from_sql
from penstock.stream.triggers import (
    after_all,
    after_any,
    after_count,
    after_each,
    after_processing_time,
    after_punctuation,
    after_watermark,
    default,
    every,
    or_finally,
    repeatedly,
)
from penstock.stream.windows import (
    as_of,
    between,
    calendar,
    delta,
    elapsed,
    fixed,
    global_window,
    punctuation,
    records,
    same_windows,
    sessions,
    sliding,
    sliding_by,
    tumbling,
)
from penstock.stream.yaml_loader.document import from_document, from_yaml

__all__ = [
    "Pipeline",
    "after_all",
    "after_any",
    "after_count",
    "after_each",
    "after_processing_time",
    "after_punctuation",
    "after_watermark",
    "as_of",
    "between",
    "calendar",
    "collect",
    "combine",
    "count",
    "default",
    "delta",
    "distinct",
    "elapsed",
    "every",
    "first",
    "fixed",
    "from_document",
    "from_sql",
    "from_yaml",
    "global_window",
    "join",
    "last",
    "max_",
    "mean",
    "min_",
    "of",
    "or_finally",
    "punctuation",
    "quantiles",
    "read",
    "read_panes",
    "records",
    "repeatedly",
    "same_windows",
    "sessions",
    "sliding",
    "sliding_by",
    "sum_",
    "top",
    "tumbling",
    "union",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # type checkers must refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        return find_added_keyword(
            __name__, name, AGGREGATE_KEYWORDS, POLICY_KEYWORDS, TRIGGER_KEYWORDS, WINDOW_KEYWORDS
        )
