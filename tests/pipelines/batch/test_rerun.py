"""Which recorded batches share a job when they are run again."""

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.spark import rerun
from penstock.pipelines.spark.rerun import Rerun, over_all, sharing
from penstock.pipelines.spark.shared import Spans


def batch(start: int, end: int, lookups: dict[str, int] | None = None) -> Rerun:
    return Rerun(start, (Range("t", 0, start, end),), lookups=lookups or {})


def numbers(batches: list[Rerun]) -> list[list[int]]:
    return [[number for number, _ in some] for some in sharing(batches)]


def test_batches_share_a_job_up_to_as_many_records_as_it_may_hold() -> None:
    many = rerun.RECORDS_TO_A_JOB
    assert numbers([batch(0, many // 2), batch(many // 2, many), batch(many, many + 1)]) == [[0, 1], [2]]
    assert numbers([batch(0, 3 * many), batch(3 * many, 3 * many + 1)]) == [[0], [1]]
    assert numbers([]) == []


def test_ticks_share_with_whatever_is_around_them() -> None:
    assert numbers([Rerun(1), batch(0, 5, {"a": 1}), Rerun(2), batch(5, 6, {"a": 1})]) == [[0, 1, 2, 3]]


def test_batches_that_saw_other_versions_of_a_table_do_not_share() -> None:
    assert numbers([batch(0, 5, {"a": 1}), Rerun(2), batch(5, 6, {"a": 2})]) == [[0, 1], [2]]


def test_a_job_reads_from_the_first_offset_of_its_batches_to_the_last() -> None:
    spans = [Spans(0, 1, (Range("t", 0, 4, 7), Range("t", 1, 0, 0))), Spans(1, 2, (Range("t", 0, 7, 9),))]
    assert over_all(spans) == (Range("t", 0, 4, 9), Range("t", 1, 0, 0))
