"""What the tests of places that cannot be written share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def without_rights() -> Iterator[None]:
    """Let permissions bind the super-user too."""
    if os.geteuid() != 0:
        yield
        return
    # The system's own place for temporary files may be the super-user's alone.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        before, tempfile.tempdir = tempfile.tempdir, place
        os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield
        finally:
            os.setresuid(0, 0, 0)
            tempfile.tempdir = before
