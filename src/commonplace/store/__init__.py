"""The store: the source of truth, in SQLite or PostgreSQL; its longer statements are in `sql`."""
