"""Discover the files of a directory to index, leaving out what ignore files exclude by git's rules.

One `scandir` per directory, one `stat` per selected file. Links are not followed: the walk ends and stays in the root.

A `Look` is a digest of the paths, sizes and times of the files to index: a directory needs indexing again exactly when
its `Look` changes (an edit, a rename, an ignore rule).
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

from pathspec import RegexPattern

from commonplace.dataclasses import dataclass, field
from commonplace.errors import CommonplaceError, NotFoundError, UsageError
from commonplace.files import open_file
from commonplace.store.filters import path_matcher, pattern_of
from commonplace.text.hashes import blake2b
from commonplace.text.languages import language_of
from commonplace.text.words import patterns
from commonplace.types import FileProblem

MAX_FILE_BYTES: Final = 1_048_576
IGNORE_FILES: Final = (".gitignore", ".commonplaceignore")

SKIPPED_DIRECTORIES: Final = frozenset(
    {".git", ".hg", ".svn", ".jj", ".commonplace", "node_modules", "bower_components", "__pycache__", "site-packages"}
    | {".tox", ".nox", ".venv", ".eggs", ".idea", ".gradle", ".terraform", ".next", ".nuxt", ".svelte-kit", ".cache"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", "__MACOSX", ".direnv"}
)
_SKIPPING_MARKS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # a virtual environment; a declared cache
_BY_NAME: Final = patterns(Path(__file__).with_name("skipped.txt"))
_UNSTORABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files to index.

    Attributes:
        project: the directory that paths are relative to; paths outside it are absolute, and all paths if it is None.
        root: the directory to walk, or one file.
        include: globs relative to `root`, as in .gitignore; None selects the usual text files of a project.
        excluded: directories never entered, such as the store's; they need not exist. A root inside one is an error.
    """

    project: Path | None
    root: Path
    include: tuple[str, ...] | None = None
    max_file_bytes: int = MAX_FILE_BYTES
    excluded: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: its artifact path, its location, and its size and time from `stat`."""

    path: str
    location: str
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Discovery:
    """The result of a walk.

    Attributes:
        root: the selection's root as an artifact path; "." is the project itself.
        refused: artifact paths of files and directories that indexing a parent directory skips, whatever its globs.
        unseen: artifact paths of files and directories that could not be read: their state is unknown, not deleted.
        unmatched: globs that matched no indexable file.
    """

    root: str
    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[FileProblem] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    unseen: list[str] = field(default_factory=list)
    unmatched: set[str] = field(default_factory=set)


def artifact_path(location: str, project: str | None) -> str:
    """Return the path relative to the project if it is inside, else the absolute path. Arguments are real paths."""
    if location == project:
        return "."
    return location if project is None else location.removeprefix(f"{project.rstrip('/')}/")


def is_secret(name: str) -> bool:
    """Return whether files of this name usually hold passwords or keys."""
    return bool(_BY_NAME["secret"].match(name.lower()))


def discover(selection: Selection) -> Discovery:
    """Find the files of a selection.

    Raises:
        NotFoundError: there is nothing at its root.
        UsageError: a glob is not valid, or the root is an excluded directory or below one.
    """
    root = os.path.realpath(selection.root)
    walk = _Walk(selection, root, None if selection.project is None else os.path.realpath(selection.project))
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116 -- the walk uses strings
    except OSError as error:
        raise NotFoundError(
            f"there is no file or directory {str(selection.root)!r}", remedy="name one that exists and can be read"
        ) from error
    for directory in (root, *map(str, Path(root).parents)):
        if directory in walk.excluded:
            raise UsageError(
                f"{str(selection.root)!r} is, or lies in, {directory!r}, which is never indexed",
                remedy="name a directory of texts, or keep the store in a directory of its own",
            )
    if stat.S_ISDIR(mode):
        walk.run()
    else:
        # A file named explicitly: neither globs nor ignore rules apply.
        above, name = os.path.split(root)
        with os.scandir(above) as listing:
            for entry in listing:
                if entry.name == name:
                    walk.check(entry)
    walk.found.files.sort(key=lambda file: file.path)
    return walk.found


class _Walk:
    def __init__(self, selection: Selection, root: str, project: str | None) -> None:
        self._prefix, self._rules = rules_above(root, project)
        self._include = None if selection.include is None else path_matcher(selection.include)
        self._takes = {glob: path_matcher((glob,)) for glob in selection.include or () if not glob.startswith("!")}
        self.excluded = frozenset(map(os.path.realpath, selection.excluded))
        self._limit = selection.max_file_bytes
        self._root = root
        self._project = project
        self.found = Discovery(artifact_path(root, project))

    def run(self) -> None:
        pending = [(self._root, self._prefix, self._rules)]
        while pending:
            location, prefix, rules = pending.pop()
            try:
                with os.scandir(location) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._report(artifact_path(location, self._project), error)
                continue
            if location != self._root and not _SKIPPING_MARKS.isdisjoint(entry.name for entry in entries):
                self._refuse(location)
                continue
            ignore_files = (entry.path for entry in entries if entry.name in IGNORE_FILES and entry.is_file())
            rules = with_rules(rules, ignore_files, prefix)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directory = f"{prefix}{entry.name}/"
                    if entry.name in SKIPPED_DIRECTORIES or is_ignored(directory, rules) or entry.path in self.excluded:
                        self._refuse(entry.path)
                    else:
                        pending.append((entry.path, directory, rules))
                    continue
                relative = f"{prefix}{entry.name}"[len(self._prefix) :]
                is_wanted = self._include(relative) if self._include else language_of(entry.name) is not None
                if is_secret(entry.name):
                    self._refuse(entry.path, "secret")
                elif is_ignored(prefix + entry.name, rules):
                    self._refuse(entry.path, "" if is_wanted else "not included")
                elif not is_wanted:
                    self.found.skipped["not included"] += 1
                elif self._include is None and _BY_NAME["generated"].match(entry.name.lower()):
                    self.found.skipped["generated"] += 1
                else:
                    for glob in [glob for glob, is_taken in self._takes.items() if is_taken(relative)]:
                        del self._takes[glob]
                    self.check(entry)
        self.found.unmatched.update(self._takes)

    def check(self, entry: os.DirEntry[str]) -> None:
        """Add a selected file, unless there is a reason to skip it."""
        path = artifact_path(entry.path, self._project)
        if is_secret(entry.name):
            self._refuse(entry.path, "secret")
            return
        # Users print and type stored paths.
        if not path.isprintable() if path.isascii() else _UNSTORABLE.search(path):
            self.found.skipped["unprintable name"] += 1
            printable = path.encode("utf-8", "backslashreplace").decode().encode("unicode_escape").decode()
            self.found.problems.append(FileProblem(printable, "its name cannot be stored; rename it"))
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._report(path, error)
            return
        if entry.is_symlink() or not stat.S_ISREG(status.st_mode):
            self._refuse(entry.path, "symbolic link" if entry.is_symlink() else "not a regular file")
        elif status.st_size > self._limit:
            self._refuse(entry.path, "too large")
        else:
            self.found.files.append(FoundFile(path, entry.path, status.st_size, status.st_mtime_ns))

    def _refuse(self, location: str, reason: str = "") -> None:
        """Record a location as refused, and count it if there is a reason to report."""
        self.found.refused.add(artifact_path(location, self._project))
        if reason:
            self.found.skipped[reason] += 1

    def _report(self, path: str, error: OSError) -> None:
        self.found.unseen.append(path)
        self.found.skipped["unreadable"] += 1
        self.found.problems.append(FileProblem(path, f"cannot be read: {error.strerror or error}"))


_MAX_IGNORE_BYTES: Final = 1_048_576
_UNHEARD_OF: Final = "\ue000"  # a file name that only a rule for all names matches

Rules: TypeAlias = "tuple[RegexPattern, ...]"
"""Ignore rules, the strongest first."""


def rules_above(root: str, project: str | None) -> tuple[str, Rules]:
    """Return a root's path prefix and the rules of the directories above it, up to its repository's top or the project.

    The prefix leads from that top to the root and ends in a slash; it is "" if the root is the top itself.
    The root was named explicitly, so rules that ignore it or a directory above it do not apply. Both are real paths.
    """
    directory = Path(root)
    top = project if project and directory.is_relative_to(project) else root
    for candidate in (directory, *directory.parents):
        if os.path.lexists(candidate / ".git"):
            top = str(candidate)
            break
    inside = os.path.relpath(root, top)
    prefix = "" if inside == "." else inside + "/"
    rules = with_rules((), [os.path.join(top, ".git", "info", "exclude")], "")  # noqa: PTH118
    parents = [prefix[: position + 1] for position, character in enumerate(prefix) if character == "/"]
    for above in ["", *parents[:-1]] if prefix else []:
        rules = with_rules(rules, (os.path.join(top, above, name) for name in IGNORE_FILES), above)  # noqa: PTH118
    # Drop each rule that ignores the root or a directory above it with everything inside, such as `*`.
    while True:
        everything = _decisive(prefix + _UNHEARD_OF, rules)
        if not everything or not everything.include or everything not in [_decisive(path, rules) for path in parents]:
            return prefix, rules
        rules = tuple(rule for rule in rules if rule is not everything)


def with_rules(rules: Rules, locations: Iterable[str], directory: str) -> Rules:
    """Return the rules preceded by those of a directory's ignore files, which are stronger; `directory` ends in "/"."""
    directory_rules: list[RegexPattern] = []
    for location in locations:
        try:
            with open_file(location) as stream:
                data = stream.read(_MAX_IGNORE_BYTES)
        except OSError:
            continue
        lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
        directory_rules.extend(rule for line in lines if (rule := _rule(line, directory)))
    return (*reversed(directory_rules), *rules)


def is_ignored(path: str, rules: Rules) -> bool:
    """Return whether the rules ignore a path whose parents are not ignored; a directory's path ends in a slash."""
    rule = _decisive(path, rules)
    return rule is not None and rule.include is True


def _decisive(path: str, rules: Rules) -> RegexPattern | None:
    """Return the rule that decides whether a path is ignored.

    Every parent directory was checked before, so a rule counts only if it matches the path itself: `!logs/` re-includes
    the directory, not what other lines ignore in it. pathspec's own matching re-includes both.
    """
    return next((rule for rule in rules if rule.regex and rule.regex.fullmatch(path)), None)


def _rule(line: str, directory: str) -> RegexPattern | None:
    """Return a line's pattern relative to the base of all paths; None for a blank line or a comment."""
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    sign, line = ("!", line[1:]) if line.startswith("!") else ("", line)
    # For git `a/**` matches what is in `a`, not `a`; and pathspec makes expressions for parts of a path of bare stars.
    line = re.sub(r"(?<![^/])\*\*+(?![^/])", "**", line)
    line = re.sub(r"(^|/)\*\*(/?)$", r"\1**/?*\2", line)
    line = re.sub(r"(^|/)\*(/?)$", r"\1?*\2", line)
    if directory and line.strip("/"):
        depth = "" if "/" in line.removesuffix("/") else "**/"
        line = "/" + re.sub(r"([\\*?\[])", r"\\\1", directory) + depth + line.removeprefix("/")
    return pattern_of(sign + line)


_DIGEST_BYTES: Final = 8
_DIGEST_BITS: Final = (1 << 8 * _DIGEST_BYTES) - 1


@dataclass(frozen=True, slots=True)
class Look:
    """The selection at one moment; equal looks mean the same files, or the same fault.

    Attributes:
        root: device and inode of the root. If either changes, the system's change reports no longer cover the root.
        seconds: how long the walk took; not compared.
        fault: why the walk failed, "" if it did not; `error` is the exception.
    """

    files: int = 0
    digest: int = 0
    devices: frozenset[int] = frozenset()
    root: tuple[int, int] = (0, 0)
    seconds: float = field(default=0.0, compare=False)
    fault: str = ""
    error: CommonplaceError | None = field(default=None, compare=False)


def look(selection: Selection, clock: Callable[[], float] = time.perf_counter) -> Look:
    start = clock()
    result = discover(selection)
    digest, directories = 0, set()
    for file in result.files:
        # A sum needs no list; each term covers one whole file. Python's hash of a tuple would not do: it is so nearly
        # linear that two files may swap places without changing the sum.
        record = f"{file.size} {file.mtime_ns} {file.path}".encode("utf-8", "surrogateescape")
        term = blake2b(record, digest_size=_DIGEST_BYTES).digest()
        digest = (digest + int.from_bytes(term, "big")) & _DIGEST_BITS
        directories.add(os.path.dirname(file.location))  # noqa: PTH120 - the walk uses strings
    devices = frozenset(status.st_dev for directory in directories if (status := _status(directory)))
    root = _status(str(selection.root))
    return Look(len(result.files), digest, devices, (root.st_dev, root.st_ino) if root else (0, 0), clock() - start)


def _status(location: str) -> os.stat_result | None:
    try:
        return os.stat(location)  # noqa: PTH116 - the walk uses strings
    except OSError:
        return None
