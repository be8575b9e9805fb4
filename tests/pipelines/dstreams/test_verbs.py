"""Each verb of Spark's DStreams and its line here, as the page teaches them, say the same of the same batches."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.platform.demo.beside.dstreams.batches import BATCHES, QUIET
from penstock.platform.demo.beside.dstreams.comparing import of_batch, of_ours, of_theirs, said
from penstock.platform.demo.beside.dstreams.here import by_this_platform
from penstock.platform.demo.beside.dstreams.page import named, verbs
from penstock.platform.demo.beside.dstreams.there import Elements, in_dstreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERWISE = ("updateStateByKey", "mapWithState")


@pytest.fixture(scope="module")
def theirs(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Elements]]:
    """What DStreams say of each batch: all verbs at once, over the same queue."""
    return in_dstreams(spark, tmp_path_factory.mktemp("dstreams"))


@pytest.fixture(scope="module")
def ours(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """Every pane of each verb of ours."""
    return by_this_platform(spark, tmp_path_factory.mktemp("ours"), lambda _: None)


@pytest.mark.spark
@pytest.mark.parametrize("verb", [name for name in verbs() if name not in OTHERWISE])
def test_a_verb_says_the_same_of_every_batch(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table], verb: str
) -> None:
    found = of_ours(verb, ours[verb])
    assert found == of_theirs(verb, theirs[verb])
    assert sum(batch.total() for batch in found) >= len(list(filter(any, BATCHES)))


@pytest.mark.spark
def test_the_newest_values_are_the_state_that_is_updated_by_key(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table]
) -> None:
    changes = said(ours["updateStateByKey"], of_batch)
    state: dict[str, int] = {}
    for batch, whole in zip(changes, theirs["updateStateByKey"], strict=True):
        state |= dict(batch.elements())  # type: ignore[arg-type]  # a word and its count
        assert Counter(state.items()) == whole
    assert len(state) == 5


@pytest.mark.spark
def test_a_function_with_a_memory_is_called_for_the_keys_of_a_batch_alone(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table]
) -> None:
    found = said(ours["mapWithState"], of_batch)
    assert found == theirs["mapWithState"]
    assert [{word for word, _ in batch} for batch in found] == [
        {word for line in batch for word in line.split()} for batch in [*BATCHES, *[[]] * QUIET]
    ]


def test_the_page_has_every_verb_that_there_is() -> None:
    from pyspark.streaming import DStream, StreamingContext

    there_are = {name for kind in (DStream, StreamingContext) for name in vars(kind) if name[0] != "_"}
    assert named() - {"mapWithState"} == there_are, "mapWithState alone never came to Python"
