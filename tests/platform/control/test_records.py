"""Desired states, batch records, health and backlogs in the control store."""

from dataclasses import replace

import pytest

from penstock.engine.host.control import (
    BatchRecord,
    DesiredRunState,
    HostControl,
    PartitionAccount,
    StreamBacklog,
    StreamHealth,
)
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import (
    count_result_rows,
    read_batch_history,
    read_overview,
    summarize_batches,
)


def build_account(partition: int, start: int, late: int = 0) -> PartitionAccount:
    return PartitionAccount("t", partition, start, start + 10, 10, 9 - late, late, 0, 0, filtered=1)


def build_batch(number: int, stream: str = "s", **changes: object) -> BatchRecord:
    record = BatchRecord(
        stream=stream,
        batch_id=number,
        epoch=1,
        kind="data",
        clock_ms=1_000 * number,
        watermark_ms=None if number == 0 else 900 * number,
        accounts=(build_account(0, 10 * number, late=1), build_account(1, 10 * number)),
        panes={"early": 3, "late": number} if number else {"early": 3},
        rows=4,
        lag_records=7,
        durations_ms={"process": 1.5, "commit": 2.5 + number},
        state_rows=5,
        state={"s": {"rows": 3, "bytes": 700}, "later": {"rows": 2, "bytes": 500}},
        result_rows={"latest/s": 3, "published/t": 1 + number},
        committed_at_ms=1_000 * number + 5,
    )
    return replace(record, **changes)


def test_the_store_implements_the_protocol_of_the_host(store: ControlStore) -> None:
    control: HostControl = store
    assert control.read_desired_states() == {}


def test_a_batch_is_read_as_it_was_written(store: ControlStore) -> None:
    assert store.read_last_batch("s") is None
    store.record_batch(build_batch(0))
    assert store.read_last_batch("s") == build_batch(0)
    store.record_batch(build_batch(1))
    assert store.read_last_batch("s") == build_batch(1)


def test_a_batch_is_stored_once(store: ControlStore) -> None:
    store.record_batch(build_batch(1))
    store.record_batch(build_batch(1, rows=99, epoch=2))
    assert store.read_last_batch("s") == build_batch(1)
    assert summarize_batches(store, "s", -1).batches == 1


def test_result_rows_are_summed_unless_a_batch_does_not_report_them(store: ControlStore) -> None:
    for number in range(3):
        store.record_batch(build_batch(number))
    summary = summarize_batches(store, "s", 0)
    assert summary is not None
    assert count_result_rows(store, summary) == {"latest/s": 6, "published/t": 5}
    store.record_batch(build_batch(3, result_rows={}, rows=0, panes={}))
    store.record_batch(build_batch(4))
    quiet, older = summarize_batches(store, "s", 2), build_batch(5, result_rows={})
    assert quiet is not None
    assert count_result_rows(store, quiet) == {"latest/s": 3, "published/t": 5}
    store.record_batch(older)
    assert (summary := summarize_batches(store, "s", 2)) is not None
    assert count_result_rows(store, summary) == {}


def test_panes_of_an_unknown_timing_are_refused(store: ControlStore) -> None:
    with pytest.raises(ValueError, match="unknown pane timings \\['sideways'\\]"):
        store.record_batch(build_batch(1, panes={"sideways": 1}))


def test_each_change_of_a_desired_state_has_a_new_revision(store: ControlStore) -> None:
    revisions = [
        store.set_desired_state("s", DesiredRunState.RUNNING, 0).revision,
        store.set_desired_state("s", DesiredRunState.RUNNING, 1).revision,
        store.set_desired_state("s", DesiredRunState.DRAINED, 2).revision,
        store.set_desired_state("t", DesiredRunState.STOPPED, 3).revision,
    ]
    assert revisions == [1, 1, 2, 1]
    assert {name: state.desired for name, state in store.read_desired_states().items()} == {
        "s": DesiredRunState.DRAINED,
        "t": DesiredRunState.STOPPED,
    }


def test_a_restart_request_has_a_new_revision(store: ControlStore) -> None:
    requests = [
        (DesiredRunState.PAUSED, True, 1),
        (DesiredRunState.RUNNING, False, 2),
        (DesiredRunState.RUNNING, True, 3),
        (DesiredRunState.PAUSED, False, 4),
        (DesiredRunState.RUNNING, True, 6),
        (DesiredRunState.DRAINED, True, 8),
    ]
    for desired, restart, revision in requests:
        assert store.set_desired_state("s", desired, 0, restart=restart).revision == revision
        assert store.read_desired_states()["s"].revision == revision


def test_a_summary_covers_the_batches_after_a_given_one(store: ControlStore) -> None:
    for number in range(4):
        store.record_batch(build_batch(number))
        store.record_batch(build_batch(number, "other", rows=1_000))
    summary = summarize_batches(store, "s", 1)
    assert (summary.first, summary.last, summary.batches) == (2, 3, 2)
    assert (summary.read, summary.accepted, summary.late, summary.filtered) == (40, 34, 2, 4)
    assert summary.panes == {"early": 6, "on_time": 0, "late": 5, "retract": 0, "replaced": 0}
    assert (summary.rows, summary.duration_ms, summary.longest_ms) == (8, 13.0, 7.0)
    assert summary.newest == build_batch(3)
    assert summarize_batches(store, "s", 3) is None


def test_an_overview_shows_desired_and_actual_states(store: ControlStore) -> None:
    desired = store.set_desired_state("s", DesiredRunState.RUNNING, 0)
    store.set_desired_state("t", DesiredRunState.STOPPED, 0)
    lease = store.acquire_lease("s", "host", 0, 1_000)
    store.record_batch(build_batch(5))
    store.report_health(StreamHealth("s", StreamState.PAUSED, "", 1))
    store.report_health(StreamHealth("s", StreamState.RUNNING, "", 2))
    first, second = read_overview(store)
    assert (first.desired, first.lease, first.last) == (desired, lease, build_batch(5))
    assert first.health == StreamHealth("s", StreamState.RUNNING, "", 2)
    assert (second.stream, second.lease, second.last, second.health) == ("t", None, None, None)


def test_only_the_newest_epoch_reports_health(store: ControlStore) -> None:
    for state, epoch, expected in (
        ("running", 1, "running"),
        ("running", 3, "running"),
        ("stopped", 1, "running"),
    ):
        store.report_health(StreamHealth("s", StreamState(state), "", epoch, epoch))
        assert store.read_health("s").state == expected
    assert store.read_health("s").epoch == 3
    store.report_health(StreamHealth("s", StreamState.DRAINED, "", 2, 3))
    assert store.read_health("s").state == "drained"


@pytest.mark.parametrize(
    ("reason", "stored"),
    [("no device a\0b", r"no device a\x00b"), ("\ud800 is no letter, ö is", r"\ud800 is no letter, ö is")],
)
def test_a_reason_with_invalid_characters_is_stored_escaped(
    store: ControlStore, reason: str, stored: str
) -> None:
    """Otherwise the report would fail on each retry, and the stream would be shown as running."""
    store.report_health(StreamHealth("s", StreamState.FAILED, reason, 10))
    assert store.read_health("s") == StreamHealth("s", StreamState.FAILED, stored, 10)


def test_only_the_newest_epoch_reports_backlogs(
    store: ControlStore,
) -> None:
    for stream in ("s", "t"):
        store.acquire_lease(stream, "host", 0, 1_000)
        store.record_batch(build_batch(4, stream))
    backlogs = StreamBacklog("s", 4, 10, 500, 1), StreamBacklog("t", 4, 20, 600, 1)
    store.report_backlogs([])
    store.report_backlogs(backlogs)
    assert [(overview.backlog, overview.lag_records) for overview in read_overview(store)] == [
        (backlogs[0], 10),
        (backlogs[1], 20),
    ]
    store.acquire_lease("s", "other", 2_000, 1_000)
    later = replace(backlogs[0], since_ms=2_500, epoch=2)
    store.report_backlogs([later, replace(backlogs[1], records=0)])
    store.report_backlogs([backlogs[0]])
    assert [(overview.backlog, overview.lag_records) for overview in read_overview(store)] == [
        (later, 10),
        (None, 7),
    ]
    store.record_batch(build_batch(5))
    assert read_overview(store)[0].backlog is None


def test_replaced_batches_are_no_history_but_are_summarized(store: ControlStore) -> None:
    for number in range(4):
        store.record_batch(build_batch(number))
    store.record_batch(replace(build_batch(0), stream="another"))
    store.mark_batches_replaced("s", 3)
    assert [record.batch_id for record in read_batch_history(store, "s")] == [3]
    assert len(read_batch_history(store, "another")) == 1
    summary, other = summarize_batches(store, "s", -1), summarize_batches(store, "another", -1)
    assert (summary.first, summary.last, summary.batches, summary.replaced) == (0, 3, 4, 3)
    assert other.replaced == 0
