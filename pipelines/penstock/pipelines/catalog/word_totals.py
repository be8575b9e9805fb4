"""Total count of each word since the start of the stream, emitted after each batch."""

from dataclasses import dataclass

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.pipelines.catalog.word_count import SPLIT_WORDS_SQL
from penstock.pipelines.demonstration import Demo
from penstock.stream import read


@dataclass(frozen=True)
class WordTotal:
    """The count so far."""

    times: int = 0


def count_words(context: KeyContext[WordTotal]) -> KeyUpdate[WordTotal]:
    """Return the count after each batch that contains the word."""
    total = WordTotal((context.state or WordTotal()).times + len(context.records))
    return KeyUpdate(total, [OutputRow({"times": total.times})])


word_totals = (
    read("lines", idle_after="5 seconds")
    .sql(SPLIT_WORDS_SQL)
    .key("word")
    .stateful(count_words, state=WordTotal, returns={"times": "BIGINT"})
    .write("word_totals", mode="log")
)

demo = Demo(rate=2, last="90 seconds", step="3 seconds", key=("the",))
