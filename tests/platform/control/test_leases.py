"""One writer: who gets a lease, who keeps it, who has lost it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from penstock.platform.control import ControlStore

TTL = 1_000
RACER = Path(__file__).with_name("racer.py")


def test_a_lease_goes_to_the_first_and_not_to_the_second(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    assert lease is not None
    assert (lease.epoch, lease.expires_at_ms) == (1, TTL)
    assert store.acquire_lease("s", "second", TTL - 1, TTL) is None
    assert store.read_lease("s") == lease
    assert store.read_lease("never held") is None


def test_leases_of_two_streams_are_apart(store: ControlStore) -> None:
    assert store.acquire_lease("s", "first", 0, TTL)
    assert store.acquire_lease("t", "second", 0, TTL)


def test_the_epoch_rises_with_every_acquisition(store: ControlStore) -> None:
    taken = [store.acquire_lease("s", "first", 0, TTL), store.acquire_lease("s", "first", 1, TTL)]
    taken.append(store.acquire_lease("s", "second", 1 + TTL, TTL))
    store.release_lease(taken[-1])
    taken.append(store.acquire_lease("s", "first", 2 + TTL, TTL))
    assert [lease.epoch for lease in taken if lease] == [1, 2, 3, 4]


def test_a_lease_that_was_taken_over_is_not_renewed(store: ControlStore) -> None:
    lost = store.acquire_lease("s", "first", 0, TTL)
    held = store.acquire_lease("s", "second", TTL, TTL)
    assert not store.renew_lease(lost, TTL, TTL)
    assert store.read_lease("s") == held


def test_a_lease_of_an_older_epoch_is_not_renewed_by_its_own_holder(store: ControlStore) -> None:
    older = store.acquire_lease("s", "first", 0, TTL)
    newer = store.acquire_lease("s", "first", 1, TTL)
    assert not store.renew_lease(older, 2, TTL)
    assert store.renew_lease(newer, 2, TTL)
    assert store.read_lease("s") == replace(newer, expires_at_ms=2 + TTL)


def test_a_lease_that_ran_out_is_renewed_while_nobody_took_it(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    assert store.renew_lease(lease, 5 * TTL, TTL)
    assert store.acquire_lease("s", "second", 6 * TTL - 1, TTL) is None


def test_a_lease_of_a_host_that_was_killed_before_the_clock_went_back_is_not_waited_for(
    store: ControlStore,
) -> None:
    hour = 3_600_000
    killed = store.acquire_lease("s", "killed", hour, TTL)
    taken = store.acquire_lease("s", "next", 0, TTL)
    assert (taken.epoch, taken.expires_at_ms) == (2, TTL)
    assert not store.renew_lease(killed, 1, TTL)
    assert store.acquire_lease("s", "third", 1, TTL) is None


def test_a_host_that_lives_keeps_its_lease_when_the_clock_goes_back(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 3_600_000, TTL)
    assert store.renew_lease(lease, 0, TTL)
    assert store.acquire_lease("s", "second", TTL - 1, TTL) is None


def test_clocks_that_differ_by_minutes_take_no_lease_away(store: ControlStore) -> None:
    assert store.acquire_lease("s", "first", 240_000, 300_000)
    assert store.acquire_lease("s", "second", 0, 300_000) is None


def test_a_released_lease_is_free_at_once_and_cannot_be_renewed(store: ControlStore) -> None:
    lease = store.acquire_lease("s", "first", 0, TTL)
    store.release_lease(lease)
    assert not store.renew_lease(lease, 1, TTL)
    assert store.acquire_lease("s", "second", 1, TTL) is not None


def test_releasing_a_lost_lease_leaves_its_new_holder_alone(store: ControlStore) -> None:
    lost = store.acquire_lease("s", "first", 0, TTL)
    held = store.acquire_lease("s", "second", TTL, TTL)
    store.release_lease(lost)
    assert store.read_lease("s") == held


def test_processes_that_race_for_a_lease_never_hold_it_at_once(url: str, tmp_path: Path) -> None:
    command = [sys.executable, str(RACER), url, str(tmp_path / "room"), "20"]
    racers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE) for name in ("a", "b", "c")]
    answers = [racer.communicate(timeout=60)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert sorted(epoch for answer in answers for epoch in json.loads(answer)) == list(range(1, 61))
