"""Hashtag completion: for each prefix, the three most used tags of the last minute.

The first stage counts tags in sliding windows and corrects the counts. The second stage expands each tag to its
prefixes and keeps the top three for each prefix. A corrected count also corrects the suggestions.
"""

from typing import TYPE_CHECKING

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_count, after_watermark, count, every, read, repeatedly, sliding, top

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PREFIX_LENGTH = 8
"""The length of the longest prefix for which tags are suggested."""


def expand_prefixes(tags: "pa.Table") -> "pa.Table":
    """Return each tag once for each of its prefixes."""
    import pyarrow as pa

    names = tags.column("tag").to_pylist()
    lengths = [min(len(name), MAX_PREFIX_LENGTH) for name in names]
    rows = [row for row, length in enumerate(lengths) for _ in range(length)]
    prefixes = [
        name[: upto + 1] for name, length in zip(names, lengths, strict=True) for upto in range(length)
    ]
    return tags.take(pa.array(rows, pa.int64())).append_column("typed", pa.array(prefixes, pa.string()))


tag_counts = (
    read("tweets", idle_after="5 seconds")
    .sql("SELECT *, explode(hashtags) AS tag FROM input")
    .key("tag")
    .aggregate(uses=count())
    .window(sliding("1 minute", "10 seconds"))
    .trigger(after_watermark(early=every("2 seconds")), lateness="1 minute")
    .accumulation("retracting")
    .write("hashtag_counts", mode="latest")
)

hashtags = (
    tag_counts.then()
    .arrow(expand_prefixes)
    .key("typed")
    .aggregate(suggestions=top(3, "tag", by="uses"))
    .trigger(repeatedly(after_count(1)))
    .write("hashtags", mode="latest")
)

demo = Demo(rate=5, last="2 minutes", step="3 seconds", key=("c",))
