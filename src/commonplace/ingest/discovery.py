"""Find the files of a directory that are worth indexing; it reads no file but ignore rules, and keeps nothing.

One `scandir` a directory and one `stat` a wanted file. Links to directories are not followed, so the walk ends.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from commonplace.errors import NotFoundError
from commonplace.ingest.ignore import IGNORE_FILES, Rules, globs, is_ignored, rules
from commonplace.text.languages import default_globs, language_of
from commonplace.types import FileProblem

MAX_FILE_BYTES: Final = 1_048_576

CONTRACT_INCLUDE: Final = (
    ".aiwg/requirements/**/*.md",
    ".aiwg/architecture/**/*.md",
    "src/**/*.ts",
    "test/**/*.ts",
    "docs/**/*.md",
    ".aiwg/research/**/*.md",
)
"""The globs that the auto-retrieval contract lists; the default list holds all that they name."""

_SKIPPED_DIRECTORIES: Final = frozenset(
    {".git", ".hg", ".svn", ".jj", ".commonplace", "node_modules", "bower_components", "__pycache__", "site-packages"}
    | {".tox", ".nox", ".venv", ".eggs", ".idea", ".gradle", ".terraform", ".next", ".nuxt", ".svelte-kit", ".cache"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", "__MACOSX", ".direnv"}
)
_SKIPPING_MARKS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # a virtual environment; a cache by its own word
_SECRET: Final = re.compile(
    r"\.env(?:rc)?(?:\.(?!example$|sample$|template$|dist$|defaults?$).*)?$"
    r"|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx?|ppk|gpg|ovpn|tfvars|tfstate)$"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?!.*\.pub$)"
    r"|(?:credentials?|secrets?)(?:[._-].*)?(?<!\.py)(?<!\.[jt]s)(?<!\.[jt]sx)(?<!\.go)(?<!\.rs)(?<!\.java)(?<!\.kt)"
    r"(?<!\.cs)(?<!\.rb)(?<!\.php)(?<!\.md)(?<!\.rst)(?<!\.pyi)(?<!\.swift)(?<!\.adoc)$"
    r"|[._]netrc$|\.npmrc$|\.pypirc$|\.pgpass$|\.htpasswd$|\.git-credentials$|\.dockercfg$|\.vault-token$"
    r"|service[-_]account.*\.json$"
)
_GENERATED: Final = re.compile(
    r".*(?:[.-]min|\.bundle|\.chunk|\.generated|\.designer|\.g|\.pb|_pb2|_pb2_grpc)\.\w+$"
    r"|.*[-_.]lock\.(?:ya?ml|toml|json)$|.*\.snap$"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to look at.

    Attributes:
        project: the directory that paths are relative to; what is outside it has absolute paths.
        root: the directory to walk, or one file.
        include: globs relative to `root`, as in .gitignore; None means the usual kinds of text in a project.
        max_file_bytes: larger files are passed over.
    """

    project: Path
    root: Path
    include: tuple[str, ...] | None = None
    max_file_bytes: int = MAX_FILE_BYTES


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
        files: sorted by path.
        skipped: how many files were passed over, by reason.
        unseen: artifact paths of files and directories that could not be looked at: unknown, not gone.
    """

    root: str
    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[FileProblem] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


def default_include() -> tuple[str, ...]:
    """Return the globs that stand for `include=None`; to match by name and suffix, as the walk does, is the same."""
    return tuple(dict.fromkeys((*CONTRACT_INCLUDE, *default_globs())))


def artifact_path(location: str, project: str) -> str:
    """Return a posix path relative to the project for what is inside it, else the absolute one; both are real paths."""
    if location == project:
        return "."
    prefix = project if project.endswith(os.sep) else project + os.sep
    inside = location[len(prefix) :] if location.startswith(prefix) else location
    return inside.replace(os.sep, "/")


def is_secret(name: str) -> bool:
    """Return whether a file of this name usually holds passwords or keys."""
    return bool(_SECRET.match(name.lower()))


def discover(selection: Selection) -> Discovery:
    """Find the files of a selection.

    Raises:
        NotFoundError: there is nothing at its root.
        UsageError: a glob is not valid.
    """
    root = os.path.realpath(selection.root)
    project = os.path.realpath(selection.project)
    walk = _Walk(selection, root, project)
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116 -- the walk speaks in strings
    except OSError as error:
        raise NotFoundError(
            f"there is no file or directory {str(selection.root)!r}", remedy="name one that exists and can be read"
        ) from error
    if stat.S_ISDIR(mode):
        walk.run()
    else:
        walk.take_root_file()
    walk.found.files.sort(key=lambda file: file.path)
    return walk.found


class _Walk:
    """One walk; `found` is its result."""

    def __init__(self, selection: Selection, root: str, project: str) -> None:
        self._include = globs(selection.include) if selection.include is not None else None
        self._limit = selection.max_file_bytes
        self._root = root
        self._project = project
        self._links: list[FoundFile] = []
        self.found = Discovery(artifact_path(root, project))

    def run(self) -> None:
        pending: list[tuple[str, str, tuple[Rules, ...]]] = [(self._root, "", self._repository_rules())]
        while pending:
            location, inside, chain = pending.pop()
            try:
                with os.scandir(location) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._report(artifact_path(location, self._project), error)
                continue
            if inside and not _SKIPPING_MARKS.isdisjoint(entry.name for entry in entries):
                continue
            chain = self._with_rules_here(entries, inside, chain)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    deeper = f"{inside}{entry.name}/"
                    if entry.name not in _SKIPPED_DIRECTORIES and not is_ignored(deeper, chain):
                        pending.append((entry.path, deeper, chain))
                else:
                    self._take(entry, inside + entry.name, chain)
        self._add_links()

    def take_root_file(self) -> None:
        """Take the one file that was named; neither globs nor ignore rules are asked."""
        directory, name = os.path.split(self._root)
        with os.scandir(directory) as listing:
            for entry in listing:
                if entry.name == name:
                    self._check(entry)

    def _repository_rules(self) -> tuple[Rules, ...]:
        exclude = Path(self._root, ".git", "info", "exclude")
        return (rules(_lines(str(exclude))),) if exclude.is_file() else ()

    def _with_rules_here(
        self, entries: Sequence[os.DirEntry[str]], inside: str, chain: tuple[Rules, ...]
    ) -> tuple[Rules, ...]:
        for entry in entries:
            if entry.name in IGNORE_FILES and entry.is_file():
                compiled = rules(_lines(entry.path), skip=len(inside))
                chain = (*chain, compiled) if compiled.patterns else chain
        return chain

    def _take(self, entry: os.DirEntry[str], inside: str, chain: tuple[Rules, ...]) -> None:
        name = entry.name
        is_wanted = self._include.verdict(inside) is True if self._include else language_of(name) is not None
        if is_secret(name):
            self.found.skipped["secret"] += 1
        elif not is_wanted:
            self.found.skipped["other kind"] += 1
        elif not chain or not is_ignored(inside, chain):
            if self._include is None and _GENERATED.match(name.lower()):
                self.found.skipped["generated"] += 1
            else:
                self._check(entry)

    def _check(self, entry: os.DirEntry[str]) -> None:
        path = artifact_path(entry.path, self._project)
        if is_secret(entry.name):
            self.found.skipped["secret"] += 1
            return
        if not _is_storable(path):
            self.found.skipped["unprintable name"] += 1
            printable = path.encode("utf-8", "backslashreplace").decode().encode("unicode_escape").decode()
            self.found.problems.append(FileProblem(printable, "its name cannot be stored; rename it"))
            return
        try:
            status = entry.stat()
        except OSError as error:
            if entry.is_symlink():
                self.found.skipped["symbolic link"] += 1
            else:
                self._report(path, error)
            return
        if not stat.S_ISREG(status.st_mode):
            kind = "symbolic link" if entry.is_symlink() else "not a regular file"
            self.found.skipped[kind] += 1
        elif status.st_size > self._limit:
            self.found.skipped["too large"] += 1
        else:
            file = FoundFile(path, entry.path, status.st_size, status.st_mtime_ns)
            (self._links if entry.is_symlink() else self.found.files).append(file)

    def _add_links(self) -> None:
        """Take linked files that lie in the root and are not found under their own name."""
        seen = {file.location for file in self.found.files}
        for link in self._links:
            target = os.path.realpath(link.location)
            is_inside = target.startswith(self._root.rstrip(os.sep) + os.sep)
            if is_inside and target not in seen and not is_secret(os.path.basename(target)):  # noqa: PTH119
                seen.add(target)
                self.found.files.append(link)
            else:
                self.found.skipped["symbolic link"] += 1

    def _report(self, path: str, error: OSError) -> None:
        self.found.unseen.append(path)
        self.found.skipped["unreadable"] += 1
        self.found.problems.append(FileProblem(path, f"cannot be read: {error.strerror or error}"))


def _is_storable(path: str) -> bool:
    """Return whether a path is Unicode without control characters, so that it can be stored, printed and typed."""
    if path.isascii():
        return path.isprintable()
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not any(sign < " " or "\x7f" <= sign <= "\x9f" for sign in path)


def _lines(location: str) -> list[str]:
    try:
        with open(location, "rb") as stream:  # noqa: PTH123 -- the walk speaks in strings
            data = stream.read(MAX_FILE_BYTES)
    except OSError:
        return []
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
