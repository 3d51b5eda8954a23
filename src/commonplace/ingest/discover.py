"""Discover the files of a directory to index, leaving out what ignore files name by the rules of git.

One `scandir` a directory and one `stat` a wanted file. No link is followed, so the walk ends, and inside the root.

A `Look` is a digest of paths, sizes and times of what would be indexed: a directory needs indexing again exactly when
it changes (an edit, a rename, an ignore rule).
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
_SKIPPING_MARKS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # a virtual environment; a cache by its own word
_BY_NAME: Final = patterns(Path(__file__).with_name("skipped.txt"))
_UNSTORABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # controls, and halves of characters


@dataclass(frozen=True, slots=True)
class Selection:
    """What to look at.

    Attributes:
        project: the directory that paths are relative to; what is outside it has absolute paths, and everything where
            it is None.
        root: the directory to walk, or one file.
        include: globs relative to `root`, as in .gitignore; None means the usual kinds of text in a project.
        excluded: directories that are never entered, such as the store's own; they need not exist. A root in one is an
            error.
    """

    project: Path | None
    root: Path
    include: tuple[str, ...] | None = None
    max_file_bytes: int = MAX_FILE_BYTES
    excluded: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: its artifact path, where it is, and what `stat` says of it."""

    path: str
    location: str
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Discovery:
    """What a walk found.

    Attributes:
        root: the selection's root in the form of an artifact path; "." is the project itself.
        refused: artifact paths of files and directories that no indexing from above takes, whatever its globs.
        unseen: artifact paths of files and directories that could not be looked at: unknown, not gone.
        unmatched: globs that no file matched which may be indexed.
    """

    root: str
    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[FileProblem] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    unseen: list[str] = field(default_factory=list)
    unmatched: set[str] = field(default_factory=set)


def artifact_path(location: str, project: str | None) -> str:
    """Return a posix path relative to the project for what is inside it, else the absolute one; both are real paths."""
    if location == project:
        return "."
    return location if project is None else location.removeprefix(f"{project.rstrip('/')}/")


def is_secret(name: str) -> bool:
    """Return whether a file of this name usually holds passwords or keys."""
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
        mode = os.stat(root).st_mode  # noqa: PTH116 -- the walk speaks in strings
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
        # One file that was named: neither globs nor ignore rules are asked.
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
            location, inside, rules = pending.pop()
            try:
                with os.scandir(location) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._report(artifact_path(location, self._project), error)
                continue
            if location != self._root and not _SKIPPING_MARKS.isdisjoint(entry.name for entry in entries):
                self._refuse(location)
                continue
            own = (entry.path for entry in entries if entry.name in IGNORE_FILES and entry.is_file())
            rules = with_rules(rules, own, inside)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    deeper = f"{inside}{entry.name}/"
                    if entry.name in SKIPPED_DIRECTORIES or is_ignored(deeper, rules) or entry.path in self.excluded:
                        self._refuse(entry.path)
                    else:
                        pending.append((entry.path, deeper, rules))
                    continue
                below = f"{inside}{entry.name}"[len(self._prefix) :]
                is_wanted = self._include(below) if self._include else language_of(entry.name) is not None
                if is_secret(entry.name):
                    self._refuse(entry.path, "secret")
                elif is_ignored(inside + entry.name, rules):
                    self._refuse(entry.path, "" if is_wanted else "not included")
                elif not is_wanted:
                    self.found.skipped["not included"] += 1
                elif self._include is None and _BY_NAME["generated"].match(entry.name.lower()):
                    self.found.skipped["generated"] += 1
                else:
                    for glob in [glob for glob, is_taken in self._takes.items() if is_taken(below)]:
                        del self._takes[glob]
                    self.check(entry)
        self.found.unmatched.update(self._takes)

    def check(self, entry: os.DirEntry[str]) -> None:
        """Take a file that is wanted, unless there is a reason not to."""
        path = artifact_path(entry.path, self._project)
        if is_secret(entry.name):
            self._refuse(entry.path, "secret")
            return
        # What is stored has to be printed and typed.
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
        """Note what is not for indexing, and count it if there is a reason to give."""
        self.found.refused.add(artifact_path(location, self._project))
        if reason:
            self.found.skipped[reason] += 1

    def _report(self, path: str, error: OSError) -> None:
        self.found.unseen.append(path)
        self.found.skipped["unreadable"] += 1
        self.found.problems.append(FileProblem(path, f"cannot be read: {error.strerror or error}"))


_MAX_IGNORE_BYTES: Final = 1_048_576
_UNHEARD_OF: Final = "\ue000"  # a file name that only a rule for every name can match

Rules: TypeAlias = "tuple[RegexPattern, ...]"
"""The strongest first."""


def rules_above(root: str, project: str | None) -> tuple[str, Rules]:
    """Return where a root is, and the rules from above it: from its repository's top, else the project around it.

    The first is what leads from there to the root, with a slash at its end; "" if the root is where the rules begin.
    The root was named, so rules that ignore it, or a directory around it, do not hold for that; both are real paths.
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
    around = [prefix[: place + 1] for place, sign in enumerate(prefix) if sign == "/"]
    for above in ["", *around[:-1]] if prefix else []:
        rules = with_rules(rules, (os.path.join(top, above, name) for name in IGNORE_FILES), above)  # noqa: PTH118
    # A rule that ignores the root, or a directory around it, and whatever is in it, such as `*`, is taken out.
    while True:
        everything = _decisive(prefix + _UNHEARD_OF, rules)
        if not everything or not everything.include or everything not in [_decisive(each, rules) for each in around]:
            return prefix, rules
        rules = tuple(rule for rule in rules if rule is not everything)


def with_rules(rules: Rules, locations: Iterable[str], directory: str) -> Rules:
    """Return rules with those of a directory's own ignore files, which are stronger; `directory` ends in a slash."""
    own: list[RegexPattern] = []
    for location in locations:
        try:
            with open_file(location) as stream:
                data = stream.read(_MAX_IGNORE_BYTES)
        except OSError:
            continue
        lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
        own.extend(rule for line in lines if (rule := _rule(line, directory)))
    return (*reversed(own), *rules)


def is_ignored(path: str, rules: Rules) -> bool:
    """Return whether rules ignore a path, a directory's with a slash at its end, where none above it is ignored."""
    rule = _decisive(path, rules)
    return rule is not None and rule.include is True


def _decisive(path: str, rules: Rules) -> RegexPattern | None:
    """Return the rule that decides about a path.

    Each directory on the way down was asked about, so a rule counts only where it matches the path itself: `!logs/`
    takes back the directory, not what other lines ignore in it. pathspec's own matching lets it take back both.
    """
    return next((rule for rule in rules if rule.regex and rule.regex.fullmatch(path)), None)


def _rule(line: str, directory: str) -> RegexPattern | None:
    """Return the pattern of a line as seen from where paths begin, None if it says nothing."""
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    sign, line = ("!", line[1:]) if line.startswith("!") else ("", line)
    # To git `a/**` names what is in `a`, not `a`; and pathspec makes expressions for parts of a path of bare stars.
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
    """What was chosen at one time; equal looks are the same files, or the same fault.

    Attributes:
        root: device and inode of the root. Of another one, or a new disk in it, the system reports nothing.
        seconds: how long it took; it is not compared.
        fault: why nothing could be looked at, "" where it could; `error` is what was raised.
    """

    files: int = 0
    digest: int = 0
    devices: frozenset[int] = frozenset()
    root: tuple[int, int] = (0, 0)
    seconds: float = field(default=0.0, compare=False)
    fault: str = ""
    error: CommonplaceError | None = field(default=None, compare=False)


def look(selection: Selection, clock: Callable[[], float] = time.perf_counter) -> Look:
    begun = clock()
    found = discover(selection)
    digest, directories = 0, set()
    for file in found.files:
        # A sum, so that no list has to be kept; each term is of the whole of one file. Python's own hash of a tuple
        # will not do: it is so nearly linear that two files may change places without changing the sum.
        whole = f"{file.size} {file.mtime_ns} {file.path}".encode("utf-8", "surrogateescape")
        term = blake2b(whole, digest_size=_DIGEST_BYTES).digest()
        digest = (digest + int.from_bytes(term, "big")) & _DIGEST_BITS
        directories.add(os.path.dirname(file.location))  # noqa: PTH120 - the walk speaks in strings
    devices = frozenset(status.st_dev for each in directories if (status := _status(each)))
    root = _status(str(selection.root))
    return Look(len(found.files), digest, devices, (root.st_dev, root.st_ino) if root else (0, 0), clock() - begun)


def _status(place: str) -> os.stat_result | None:
    try:
        return os.stat(place)  # noqa: PTH116 - the walk speaks in strings
    except OSError:
        return None
