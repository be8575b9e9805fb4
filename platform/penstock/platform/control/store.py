"""The control store for hosts and commands. Every call is a separate transaction."""

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
from penstock.platform.control.tables import backlogs as backlogs_table
from penstock.platform.control.tables import batches, health, hosts, leases, streams

MAX_LEASE_MS = 600_000
"""Twice the longest lease that the settings allow, as tolerance for clock differences."""


class ControlStore:
    """Implements `penstock.engine.host.control.HostControl`, and stores the desired states of streams.

    Leases compare the clocks of several hosts. Keep their difference well below the length of a lease.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def acquire_lease(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """Acquire the lease if it is free, expired or already the holder's; None while another holder has it.

        A lease that expires later than any lease may is from before a clock was set back, and counts as expired.
        A live holder renews it with the new clock; otherwise nothing could acquire it until the clock catches up.
        """
        expires_at_ms = now_ms + ttl_ms
        with self.engine.begin() as connection:
            # One statement checks and acquires, so that only one of two concurrent hosts succeeds.
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
        """Renew the lease, even an expired one that no other holder took. False if it is lost or released."""
        changed_rows = self._update_lease(lease, now_ms + ttl_ms)
        return changed_rows == 1

    def release_lease(self, lease: Lease) -> None:
        """Release the lease; its epoch stays, so that the next epoch is higher."""
        self._update_lease(lease, 0)

    def read_lease(self, stream: str) -> Lease | None:
        """Return the lease of a stream, expired or not; None if there never was one."""
        row = self._read_row(leases, stream)
        return None if row is None else Lease(**row)

    def read_desired_states(self) -> Mapping[str, DesiredState]:
        """Return the desired states by stream."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(streams)).all()
        return {
            row.stream: DesiredState(row.stream, DesiredRunState(row.desired), row.revision) for row in rows
        }

    def set_desired_state(
        self, stream: str, desired: DesiredRunState, now_ms: int, *, restart: bool = False
    ) -> DesiredState:
        """Set the desired state of a stream. The same state again changes nothing, unless `restart` is set.

        A restart with another desired state raises the revision by two, so that hosts see it as a restart and not
        as a mere change.
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
        """Set the desired state if it has not changed since `previous_state`; otherwise keep it and return None."""
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
        """Insert the record of a batch; an existing record of the same stream and batch stays as it is."""
        with self.engine.begin() as connection:
            connection.execute(
                build_insert(connection, batches).values(to_batch_row(record)).on_conflict_do_nothing()
            )

    def mark_batches_replaced(self, stream: str, before_batch: int) -> None:
        """Mark a stream's batches before one as replaced by a replay. They remain as history for Dagster."""
        with self.engine.begin() as connection:
            is_replaced = (batches.c.stream == stream) & (batches.c.batch_id < before_batch)
            connection.execute(update(batches).where(is_replaced).values(replaced=True))

    def read_last_batch(self, stream: str) -> BatchRecord | None:
        """Return the newest batch of a stream; None if there is none."""
        newest = (
            select(batches).where(batches.c.stream == stream).order_by(batches.c.batch_id.desc()).limit(1)
        )
        with self.engine.connect() as connection:
            row = connection.execute(newest).mappings().first()
        return None if row is None else from_batch_row(dict(row))

    def report_health(self, stream_health: StreamHealth) -> None:
        """Store the health of a stream, unless a host with a higher epoch has reported it."""
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
        """Return the last reported health of a stream; None if there is none."""
        row = self._read_row(health, stream)
        return None if row is None else to_stream_health(row)

    def report_lost(self, lost: StreamHealth) -> None:
        """See HostControl. Writes nothing: the current lease holder reports the stream's health."""

    def report_backlogs(self, backlogs: Sequence[StreamBacklog]) -> None:
        """Store the backlogs of streams that commit no batch, unless a higher epoch has reported one."""
        if not backlogs:
            return
        with self.engine.begin() as connection:
            insert = build_insert(connection, backlogs_table).values(
                [asdict(backlog) for backlog in backlogs]
            )
            new_values = {
                name: insert.excluded[name] for name in ("batch_id", "records", "since_ms", "epoch")
            }
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=[backlogs_table.c.stream],
                    set_=new_values,
                    where=backlogs_table.c.epoch <= insert.excluded["epoch"],
                )
            )

    def report_host(self, report: HostReport) -> None:
        """Store the report of a host, replacing its earlier one."""
        values = {
            "address": report.address,
            "started_at_ms": report.started_at_ms,
            "seen_at_ms": report.seen_at_ms,
        }
        with self.engine.begin() as connection:
            insert = build_insert(connection, hosts).values(host=report.host, **values)
            connection.execute(insert.on_conflict_do_update(index_elements=[hosts.c.host], set_=values))

    def read_hosts(self) -> list[HostReport]:
        """Return the reports of all hosts that maintenance has not deleted, the newest last."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(hosts).order_by(hosts.c.started_at_ms)).mappings()
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
    """Escape what a database cannot store as text: error messages of user code may contain anything."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
