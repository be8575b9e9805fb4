"""Each verb of Spark's DStreams and its line here, as the page teaches them, say the same of the same batches."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.comparisons.dstreams.input_batches import IDLE_BATCH_COUNT, INPUT_BATCHES
from tests.comparisons.dstreams.normalization import (
    batch_second,
    normalize_dstream_batches,
    normalize_panes,
    rows_to_elements,
)
from tests.comparisons.dstreams.on_dstreams import ElementCounts, run_verbs_in_dstreams
from tests.comparisons.dstreams.on_penstock import run_verbs_here
from tests.comparisons.dstreams.verbs_page import list_named_verbs, read_verbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERWISE = ("updateStateByKey", "mapWithState")


@pytest.fixture(scope="module")
def theirs(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[ElementCounts]]:
    """What DStreams say of each batch: all verbs at once, over the same queue."""
    return run_verbs_in_dstreams(spark, tmp_path_factory.mktemp("dstreams"))


@pytest.fixture(scope="module")
def ours(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """Every pane of each verb of ours."""
    return run_verbs_here(spark, tmp_path_factory.mktemp("ours"), lambda _: None)


@pytest.mark.spark
@pytest.mark.parametrize("verb", [name for name in read_verbs() if name not in OTHERWISE])
def test_a_verb_says_the_same_of_every_batch(
    theirs: Mapping[str, list[ElementCounts]], ours: Mapping[str, pa.Table], verb: str
) -> None:
    found = normalize_panes(verb, ours[verb])
    assert found == normalize_dstream_batches(verb, theirs[verb])
    assert sum(batch.total() for batch in found) >= len(list(filter(any, INPUT_BATCHES)))


@pytest.mark.spark
def test_the_newest_values_are_the_state_that_is_updated_by_key(
    theirs: Mapping[str, list[ElementCounts]], ours: Mapping[str, pa.Table]
) -> None:
    changes = rows_to_elements(ours["updateStateByKey"], batch_second)
    state: dict[str, int] = {}
    for batch, whole in zip(changes, theirs["updateStateByKey"], strict=True):
        state |= dict(batch.elements())  # type: ignore[arg-type]  # a word and its count
        assert Counter(state.items()) == whole
    assert len(state) == 5


@pytest.mark.spark
def test_a_function_with_a_memory_is_called_for_the_keys_of_a_batch_alone(
    theirs: Mapping[str, list[ElementCounts]], ours: Mapping[str, pa.Table]
) -> None:
    found = rows_to_elements(ours["mapWithState"], batch_second)
    assert found == theirs["mapWithState"]
    assert [{word for word, _ in batch} for batch in found] == [
        {word for line in batch for word in line.split()}
        for batch in [*INPUT_BATCHES, *[[]] * IDLE_BATCH_COUNT]
    ]


def test_the_page_has_every_verb_that_there_is() -> None:
    from pyspark.streaming import DStream, StreamingContext

    there_are = {name for kind in (DStream, StreamingContext) for name in vars(kind) if name[0] != "_"}
    assert list_named_verbs() - {"mapWithState"} == there_are, "mapWithState alone never came to Python"
