"""Tell whether a path or glob that somebody else wrote stays below the directory it is meant for. It reads no disk."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath


def stays_inside(path_or_glob: str) -> bool:
    """Return whether it is relative, on every system, and never climbs; a leading `!` of a glob is passed over."""
    written = path_or_glob.lstrip("!")
    windows = PureWindowsPath(written)
    climbs = ".." in PurePosixPath(written).parts or ".." in windows.parts
    return not (climbs or windows.drive or windows.root or written.startswith("~"))
