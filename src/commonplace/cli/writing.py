"""Write the files that a person or a settings file names: where they may be, and whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from commonplace.errors import SettingsError, UsageError


def inside(project: Path, store: Path, written: str, *, setting: str, origin: str) -> Path:
    """Return the file that a setting names below a project, with all links followed.

    A settings file arrives with somebody else's clone, and so may a link: neither leads out of the project or into
    the store.

    Raises:
        SettingsError: the path leads elsewhere.
    """
    target = (project / written).resolve()
    for is_wrong, where in (
        (not target.is_relative_to(project.resolve()), f"outside the project {project}"),
        (target.is_relative_to(store.resolve()), "inside the store"),
    ):
        if is_wrong:
            raise SettingsError(
                f"{setting} is {written!r} ({origin}), which leads to {target}, {where}",
                remedy="name something below the project, or write elsewhere with --output",
            )
    return target


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place and move it there, so that nobody ever reads half of it.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a device or a pipe takes what it is given
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile's own file, which nobody else could read: this one gets the rights that any new file gets.
        fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        with fresh.open("x", encoding="utf-8") as file:
            try:
                if target.exists():
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                fresh.replace(target)
            except BaseException:
                with suppress(OSError):
                    fresh.unlink()
                raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="name another --output") from error
