"""Word count over the last 30 seconds, every ten seconds."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_watermark, count, every, read, sliding

SPLIT_WORDS_SQL = (
    r"SELECT *, explode(regexp_extract_all(lower(text), '([\\p{L}\\p{N}]+)', 1)) AS word FROM input"
)

word_count = (
    read("lines", idle_after="5 seconds")
    .sql(SPLIT_WORDS_SQL)
    .key("word")
    .aggregate(times=count())
    .window(sliding("30 seconds", "10 seconds"))
    .trigger(after_watermark(early=every("1 second")), lateness="1 minute")
    .accumulation("retracting")
    .write("word_count", mode="latest")
)

demo = Demo(rate=2, last="90 seconds", step="3 seconds", key=("the",))
