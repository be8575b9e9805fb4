"""Runs migrations on the connection and in the transaction of `open_store.migrate_schema`."""

from alembic import context

from penstock.platform.control.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
