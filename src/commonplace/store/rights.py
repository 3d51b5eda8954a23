"""Who sees which rows of a store in PostgreSQL: row-level security by namespace, and the rights of an application.

Each transaction names the namespace that it reads and writes, with the texts of its graph, or all namespaces. Rows of
others are invisible and cannot be written, also for the tables' owner; without a name, no rows are visible. This
confines the statements of Commonplace to their namespace. A user who can send other SQL can name another namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from commonplace.store.connection import EVERY
from commonplace.store.dialect import script
from commonplace.store.schema import namespace_of

ENTER: Final = "SELECT commonplace_enter($1)"
# The setting is "" if an earlier transaction of the session set it, else NULL: neither is a namespace. It is read once
# per table of a statement, not per row; planning that is the largest cost here.
_VISIBLE: Final = "nullif(coalesce(nullif(current_setting('commonplace.spaces', true), ''), '{}'), '*')::bigint[]"
_WITH_NAMESPACE: Final = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'namespace'
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY ($1) ORDER BY 1
"""
_NUMBERS: Final = """
    SELECT s.relname FROM pg_class s
        JOIN pg_depend d ON d.objid = s.oid AND d.deptype = 'i' JOIN pg_class c ON c.oid = d.refobjid
    WHERE s.relkind = 'S' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY ($1)
"""
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON schema_versions FROM {role}",
    "GRANT USAGE, SELECT ON SEQUENCE {numbers} TO {role}",
)
_GRANTED: Final = """
    SELECT DISTINCT grantee FROM information_schema.role_table_grants
    WHERE table_schema = current_schema() AND table_name = 'memories' AND privilege_type = 'INSERT'
        AND grantee != current_user
"""


def scope_of(namespace: str | None) -> str:
    """Return the value of `ENTER` that shows a namespace and its texts, or for None or `EVERY` all namespaces."""
    if namespace is None or namespace == EVERY:
        return "*"
    return "=" + namespace_of(namespace).replace("\0", "\ufffd").encode(errors="replace").decode()


def entering(scope: str) -> str:
    """Return `ENTER` with its value as a literal, to be sent with the statements that begin a transaction."""
    return ENTER.replace("$1", Literal(scope).as_string())


def guard(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Enable row-level security on these tables, so that a transaction sees only the rows of its namespace."""
    connection.execute(script("rights"))
    for (table,) in connection.execute(_WITH_NAMESPACE, [list(tables)]).fetchall():
        connection.execute(f"DROP POLICY IF EXISTS one_namespace ON {table}")
        connection.execute(
            f"CREATE POLICY one_namespace ON {table}"
            f" USING (coalesce(namespace = ANY ((SELECT {_VISIBLE})::bigint[]), true))"
        )
        connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")


def grant(connection: psycopg.Connection[Any], role: str, tables: Sequence[str]) -> None:
    """Grant a role the rights to read and write these tables, but not to alter them.

    Roles that were granted the store before get the same rights on tables added since; "" stands for no further role.
    """
    [(schema,)] = connection.execute("SELECT current_schema()").fetchall()
    numbers = [Identifier(name) for (name,) in connection.execute(_NUMBERS, [list(tables)]).fetchall()]
    roles = {granted for (granted,) in connection.execute(_GRANTED).fetchall()} | {role}
    for grantee in sorted(roles - {""}):
        names = {
            "schema": Identifier(schema),
            "role": Identifier(grantee),
            "tables": SQL(", ").join(map(Identifier, tables)),
            "numbers": SQL(", ").join(numbers),
        }
        for statement in _GRANTS:
            connection.execute(SQL(statement).format(**names))
