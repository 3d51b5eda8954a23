"""What lies where in a store's directory."""

from __future__ import annotations

from pathlib import Path

DATABASE = "store.db"
INDEX = "index"
LOGS = "logs"
UPGRADE_LOCK = "upgrade.lock"
EMBEDDING_LOCK = "embedding.lock"
WATCH_LOCK = "watch.lock"


def index_watch_lock(root: Path, namespace: str) -> str:
    """Return the name of the lock that whoever watches a directory for a namespace holds."""
    from hashlib import sha256

    whose = f"{root}\n{namespace}".encode(errors="surrogateescape")
    return f"watch-{sha256(whose).hexdigest()[:16]}.lock"
