"""The control store as hosts and commands use it. Every call is a transaction of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine, Table, case, or_, select, update

from penstock.engine.host.control import (
    BatchRecord,
    DesiredRunState,
    DesiredState,
    HostReport,
    Lease,
    StreamBacklog,
    StreamHealth,
)
from penstock.platform.control.database_engine import build_insert
from penstock.platform.control.row_mapping import from_batch_row, to_batch_row, to_stream_health
from penstock.platform.control.tables import batches, health, hosts, leases, streams, waiting

MAX_LEASE_MS = 600_000
"""Twice what a setting may say, for clocks that differ."""


class ControlStore:
    """Keeps the promises of `penstock.engine.host.control.HostControl`, and lets people say what should run.

    Leases compare clocks of several hosts: keep these within a fraction of the lease's length.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def close(self) -> None:
        """Let go of every connection."""
        self.engine.dispose()

    def acquire_lease(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """Take the lease where it is free, expired or already the holder's; None while another has it.

        One that is to last longer than any may is of before a clock went back: whoever has it renews it by that
        clock, and whoever was killed with it would be waited for until the clock is there again.
        """
        expires_at_ms = now_ms + ttl_ms
        with self.engine.begin() as connection:
            # One statement decides and takes, so that of two hosts at the same moment one comes second.
            insert = build_insert(connection, leases).values(
                stream=stream, holder=holder, epoch=1, expires_at_ms=expires_at_ms
            )
            upsert = insert.on_conflict_do_update(
                index_elements=[leases.c.stream],
                set_={"holder": holder, "epoch": leases.c.epoch + 1, "expires_at_ms": expires_at_ms},
                where=or_(
                    leases.c.expires_at_ms <= now_ms,
                    leases.c.expires_at_ms > now_ms + MAX_LEASE_MS,
                    leases.c.holder == holder,
                ),
            ).returning(leases.c.epoch)
            epoch = connection.execute(upsert).scalar()
        return None if epoch is None else Lease(stream, holder, epoch, expires_at_ms)

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        """Prolong the lease, also one that ran out but was not taken. False once lost or given back."""
        changed_rows = self._update_lease(lease, now_ms + ttl_ms)
        return changed_rows == 1

    def release_lease(self, lease: Lease) -> None:
        """Give the lease back; its epoch stays, so that the next one is higher."""
        self._update_lease(lease, 0)

    def read_lease(self, stream: str) -> Lease | None:
        """Who has the lease, expired or not; None where nobody ever had."""
        row = self._read_row(leases, stream)
        return None if row is None else Lease(**row)

    def read_desired_states(self) -> Mapping[str, DesiredState]:
        """What should run, by stream."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(streams)).all()
        return {
            row.stream: DesiredState(row.stream, DesiredRunState(row.desired), row.revision) for row in rows
        }

    def set_desired_state(
        self, stream: str, desired: DesiredRunState, now_ms: int, *, restart: bool = False
    ) -> DesiredState:
        """Say what should become of a stream. Said again it changes nothing, unless it is to be done anew.

        Anew, and another than before, it is two revisions higher, so that no host takes it for a mere change.
        """
        revision_step = case((streams.c.desired == desired.value, 1), else_=2) if restart else 1
        with self.engine.begin() as connection:
            insert = build_insert(connection, streams).values(
                stream=stream, desired=desired.value, revision=1, changed_at_ms=now_ms
            )
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[streams.c.stream],
                    set_={
                        "desired": desired.value,
                        "revision": streams.c.revision + revision_step,
                        "changed_at_ms": now_ms,
                    },
                    where=None if restart else streams.c.desired != desired.value,
                )
            )
            revision_row = connection.execute(select(streams.c.revision).where(streams.c.stream == stream))
            return DesiredState(stream, desired, revision_row.scalar_one())

    def set_desired_state_after(
        self, previous_state: DesiredState, desired: DesiredRunState, now_ms: int
    ) -> DesiredState | None:
        """Say what should become of a stream, unless anybody did since a wish: then that holds, and it is None."""
        change = update(streams).where(
            streams.c.stream == previous_state.stream, streams.c.revision == previous_state.revision
        )
        new_values = {
            "desired": desired.value,
            "revision": previous_state.revision + 1,
            "changed_at_ms": now_ms,
        }
        with self.engine.begin() as connection:
            changed_rows = connection.execute(change.values(new_values)).rowcount
        return (
            DesiredState(previous_state.stream, desired, previous_state.revision + 1)
            if changed_rows
            else None
        )

    def record_batch(self, record: BatchRecord) -> None:
        """Write a batch down, once: a record of the same stream and batch is left as it is."""
        with self.engine.begin() as connection:
            connection.execute(
                build_insert(connection, batches).values(to_batch_row(record)).on_conflict_do_nothing()
            )

    def mark_batches_replaced(self, stream: str, before_batch: int) -> None:
        """Know that what the batches of a stream before one did is replaced: they are history for Dagster alone."""
        with self.engine.begin() as connection:
            is_replaced = (batches.c.stream == stream) & (batches.c.batch_id < before_batch)
            connection.execute(update(batches).where(is_replaced).values(replaced=True))

    def read_last_batch(self, stream: str) -> BatchRecord | None:
        """The newest record of a stream."""
        newest = (
            select(batches).where(batches.c.stream == stream).order_by(batches.c.batch_id.desc()).limit(1)
        )
        with self.engine.connect() as connection:
            row = connection.execute(newest).mappings().first()
        return None if row is None else from_batch_row(dict(row))

    def report_health(self, stream_health: StreamHealth) -> None:
        """Say how a stream is doing; replaces what was said of it before, unless a host that came later said it."""
        reason = _escape_text(stream_health.reason)
        values = {
            "state": stream_health.state.value,
            "reason": reason,
            "at_ms": stream_health.at_ms,
            "epoch": stream_health.epoch,
        }
        with self.engine.begin() as connection:
            insert = build_insert(connection, health).values(stream=stream_health.stream, **values)
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[health.c.stream], set_=values, where=health.c.epoch <= stream_health.epoch
                )
            )

    def read_health(self, stream: str) -> StreamHealth | None:
        """How a stream is doing, as last told; None where nothing was."""
        row = self._read_row(health, stream)
        return None if row is None else to_stream_health(row)

    def report_lost(self, lost: StreamHealth) -> None:
        """See Control. There is nothing to write: the host that has the stream now says how it is doing."""

    def report_backlogs(self, backlogs: Sequence[StreamBacklog]) -> None:
        """Say which streams commit nothing while records wait; a host that came later is not contradicted."""
        if not backlogs:
            return
        with self.engine.begin() as connection:
            insert = build_insert(connection, waiting).values([asdict(backlog) for backlog in backlogs])
            new_values = {
                name: insert.excluded[name] for name in ("batch_id", "records", "since_ms", "epoch")
            }
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[waiting.c.stream],
                    set_=new_values,
                    where=waiting.c.epoch <= insert.excluded["epoch"],
                )
            )

    def report_host(self, report: HostReport) -> None:
        """Say that a host is there; replaces what it said before."""
        values = {
            "address": report.address,
            "began_at_ms": report.began_at_ms,
            "seen_at_ms": report.seen_at_ms,
        }
        with self.engine.begin() as connection:
            insert = build_insert(connection, hosts).values(host=report.host, **values)
            connection.execute(insert.on_conflict_do_update(index_elements=[hosts.c.host], set_=values))

    def read_hosts(self) -> list[HostReport]:
        """Every host that was ever heard of and not forgotten, the newest last."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(hosts).order_by(hosts.c.began_at_ms)).mappings()
            return [HostReport(**row) for row in rows]

    def _update_lease(self, lease: Lease, expires_at_ms: int) -> int:
        change = update(leases).where(
            leases.c.stream == lease.stream,
            leases.c.holder == lease.holder,
            leases.c.epoch == lease.epoch,
            leases.c.expires_at_ms > 0,
        )
        with self.engine.begin() as connection:
            return connection.execute(change.values(expires_at_ms=expires_at_ms)).rowcount

    def _read_row(self, table: Table, stream: str) -> dict[str, Any] | None:
        with self.engine.connect() as connection:
            row = connection.execute(select(table).where(table.c.stream == stream)).mappings().first()
        return None if row is None else dict(row)


def _escape_text(text: str) -> str:
    """A text as either database takes it: what one's own code said of a record may hold anything."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
