"""Run migrations on the connection that `open.migrate` hands over, inside its transaction."""

from alembic import context

from penstock.platform.control.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
