"""The revisions of the schema, oldest first; Alembic reads this folder."""
