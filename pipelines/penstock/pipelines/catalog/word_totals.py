"""How often each word was said since the stream began: a count that is kept for each word, and told as it grows."""

from dataclasses import dataclass

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.pipelines.catalog.word_count import SPLIT_WORDS_SQL
from penstock.pipelines.demonstration import Demo
from penstock.stream import read


@dataclass(frozen=True)
class WordTotal:
    """What was counted so far."""

    times: int = 0


def count_words(context: KeyContext[WordTotal]) -> KeyUpdate[WordTotal]:
    """The count after each batch in which the word was said."""
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
