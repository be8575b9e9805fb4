"""Acquisition, renewal and loss of leases."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from penstock.platform.control import ControlStore

TTL = 1_000
RACER = Path(__file__).with_name("lease_racer.py")


def test_a_lease_goes_to_the_first_and_not_to_the_second(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    assert lease is not None
    assert (lease.epoch, lease.expires_at_ms) == (1, TTL)
    assert store.acquire_lease("s", "second", TTL - 1, TTL) is None
    assert store.read_lease("s") == lease
    assert store.read_lease("never held") is None


def test_leases_of_two_streams_are_independent(store: ControlStore) -> None:
    assert store.acquire_lease("s", "first", 0, TTL)
    assert store.acquire_lease("t", "second", 0, TTL)


def test_the_epoch_rises_with_every_acquisition(store: ControlStore) -> None:
    leases = [store.acquire_lease("s", "first", 0, TTL), store.acquire_lease("s", "first", 1, TTL)]
    leases.append(store.acquire_lease("s", "second", 1 + TTL, TTL))
    store.release_lease(leases[-1])
    leases.append(store.acquire_lease("s", "first", 2 + TTL, TTL))
    assert [lease.epoch for lease in leases if lease] == [1, 2, 3, 4]


def test_a_lost_lease_is_not_renewed(store: ControlStore) -> None:
    lost = store.acquire_lease("s", "first", 0, TTL)
    current = store.acquire_lease("s", "second", TTL, TTL)
    assert not store.renew_lease(lost, TTL, TTL)
    assert store.read_lease("s") == current


def test_a_lease_of_an_older_epoch_is_not_renewed_by_its_own_holder(store: ControlStore) -> None:
    older = store.acquire_lease("s", "first", 0, TTL)
    newer = store.acquire_lease("s", "first", 1, TTL)
    assert not store.renew_lease(older, 2, TTL)
    assert store.renew_lease(newer, 2, TTL)
    assert store.read_lease("s") == replace(newer, expires_at_ms=2 + TTL)


def test_an_expired_lease_is_renewed_until_another_host_takes_it(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    assert store.renew_lease(lease, 5 * TTL, TTL)
    assert store.acquire_lease("s", "second", 6 * TTL - 1, TTL) is None


def test_a_lease_far_in_the_future_does_not_block_after_a_clock_change(
    store: ControlStore,
) -> None:
    hour = 3_600_000
    killed = store.acquire_lease("s", "killed", hour, TTL)
    lease = store.acquire_lease("s", "next", 0, TTL)
    assert (lease.epoch, lease.expires_at_ms) == (2, TTL)
    assert not store.renew_lease(killed, 1, TTL)
    assert store.acquire_lease("s", "third", 1, TTL) is None


def test_a_renewed_lease_survives_a_clock_change(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 3_600_000, TTL)
    assert store.renew_lease(lease, 0, TTL)
    assert store.acquire_lease("s", "second", TTL - 1, TTL) is None


def test_a_clock_difference_of_minutes_takes_no_lease_away(store: ControlStore) -> None:
    assert store.acquire_lease("s", "first", 240_000, 300_000)
    assert store.acquire_lease("s", "second", 0, 300_000) is None


def test_a_released_lease_is_free_immediately_and_cannot_be_renewed(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    store.release_lease(lease)
    assert not store.renew_lease(lease, 1, TTL)
    assert store.acquire_lease("s", "second", 1, TTL) is not None


def test_releasing_a_lost_lease_leaves_its_new_holder_alone(store: ControlStore) -> None:
    lost = store.acquire_lease("s", "first", 0, TTL)
    current = store.acquire_lease("s", "second", TTL, TTL)
    store.release_lease(lost)
    assert store.read_lease("s") == current


def test_racing_processes_never_hold_a_lease_together(url: str, tmp_path: Path) -> None:
    command = [sys.executable, str(RACER), url, str(tmp_path / "room"), "20"]
    racers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE) for name in ("a", "b", "c")]
    outputs = [racer.communicate(timeout=60)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert sorted(epoch for answer in outputs for epoch in json.loads(answer)) == list(range(1, 61))
