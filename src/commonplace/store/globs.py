"""Path globs with the meaning of .gitignore, as indexing uses them. It knows paths as text, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commonplace.errors import UsageError


def path_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate that holds for the paths that the globs name; "" is never named.

    Raises:
        UsageError: a glob is malformed.
    """
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        raise UsageError(
            f"malformed path pattern in {list(globs)}: {error}", remedy="write it as in .gitignore"
        ) from error
    return lambda path: bool(path) and spec.match_file(path)
