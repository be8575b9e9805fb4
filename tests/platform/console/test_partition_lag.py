"""The lag by partition: positions of the newest batch beside the ends of the topic; and the account as a flow."""

import pytest
from tests.platform.console.conftest import PageReader, record_batch, start_stream

from penstock.engine.batch.accounts import PartitionAccount
from penstock.platform.console.account_flow import GAP, HEIGHT, lay_out_flow
from penstock.platform.console.partition_lag import MAX_PARTITIONS, list_partition_lags
from penstock.platform.console.stream_view import list_fates
from penstock.platform.control import ControlStore
from penstock.platform.control.batch_history import read_batches_since


def build_account(partition: int, end: int, read: int = 0) -> PartitionAccount:
    return PartitionAccount("sensors", partition, end - read, end, read, read, 0, 0, 0)


def test_the_lag_of_a_partition_is_what_the_stream_has_not_read(store: ControlStore) -> None:
    start_stream(store, "sensor_minute")
    for number in range(2):
        accounts = (build_account(0, 10 * (number + 1), 10), build_account(1, 7))
        record_batch(store, "sensor_minute", number, 10_000 - number, accounts=accounts)
    batches = read_batches_since(store, "sensor_minute", 0)
    lags = list_partition_lags(batches[-1].accounts, {("sensors", 0): 25, ("sensors", 1): 6}, batches)
    found = [(each.partition, each.position, each.end, each.lag, each.read) for each in lags]
    # An end before the position is that of a topic that was made again.
    assert found == [(0, 20, 25, 5, 20), (1, 7, 6, 0, 0)]


def test_a_partition_without_an_answer_has_no_lag() -> None:
    (lag,) = list_partition_lags([build_account(0, 10)], {}, [])
    assert (lag.end, lag.lag) == (None, None)


def test_of_many_partitions_those_with_the_greatest_lag_are_shown() -> None:
    accounts = [build_account(number, 0) for number in range(100)]
    lags = list_partition_lags(accounts, {("sensors", number): number for number in range(100)}, [])
    assert [each.partition for each in lags] == list(range(100 - MAX_PARTITIONS, 100))


def test_the_page_shows_partitions_also_while_the_broker_is_away(
    store: ControlStore, read_page: PageReader
) -> None:
    start_stream(store, "sensor_minute")
    record_batch(store, "sensor_minute", 0, 10_000)
    page = read_page("/streams/sensor_minute")
    assert 'data-key="sensors/0"' in page
    assert 'href="/quarantine/sensors"' in page


def test_the_bands_of_the_flow_are_as_thick_as_the_shares(store: ControlStore) -> None:
    record_batch(store, "sensor_minute", 0, 10_000)
    read, fates = list_fates(read_batches_since(store, "sensor_minute", 0))
    bands = lay_out_flow(read, fates).bands
    assert [band.name for band in bands] == ["accepted", "late", "quarantined", "duplicate"]
    assert sum(band.thickness for band in bands) + GAP * (len(bands) - 1) == pytest.approx(HEIGHT)
    assert bands[-1].end_y + bands[-1].thickness == pytest.approx(HEIGHT)
    shares = [fate.records for fate in fates if fate.records]
    extra = [band.thickness - bands[-1].thickness for band in bands]
    assert extra[0] / extra[1] == pytest.approx((shares[0] - shares[-1]) / (shares[1] - shares[-1]))


def test_nothing_read_is_no_flow() -> None:
    assert lay_out_flow(0, list_fates([])[1]).bands == ()
