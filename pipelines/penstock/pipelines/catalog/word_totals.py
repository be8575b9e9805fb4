"""How often each word was said since the stream began: a count that is kept for each word, and told as it grows."""

from dataclasses import dataclass

from penstock.pipelines.catalog.word_count import WORDS
from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import read
from penstock.pipelines.remembering import Answer, Call, Row


@dataclass(frozen=True)
class Total:
    """What was counted so far."""

    times: int = 0


def counted(call: Call[Total]) -> Answer[Total]:
    """The count after each batch in which the word was said."""
    total = Total((call.state or Total()).times + len(call.records))
    return Answer(total, [Row({"times": total.times})])


word_totals = (
    read("lines", idle_after="5 seconds")
    .sql(WORDS)
    .key("word")
    .remember(counted, state=Total, returns={"times": "BIGINT"})
    .write("word_totals", mode="log")
)

demo = Demo(rate=2, last="90 seconds", step="3 seconds", key=("the",))
