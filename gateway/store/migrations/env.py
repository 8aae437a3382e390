"""Alembic's entry: runs the revisions on the connection that `gateway.store.migrate` opened and locked."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], target_metadata=None, transactional_ddl=False)
context.run_migrations()
