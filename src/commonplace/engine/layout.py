"""What lies where in a store's directory."""

from __future__ import annotations

DATABASE = "store.db"
INDEX = "index"
LOGS = "logs"
UPGRADE_LOCK = "upgrade.lock"
WATCH_LOCK = "watch.lock"
