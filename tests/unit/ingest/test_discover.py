"""Which files of a directory are found, and how the others are counted."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.ingest.projects import LONG_AGO, Project

from commonplace.errors import NotFoundError, UsageError
from commonplace.ingest.discover import Look, Selection, discover, is_secret, look


def write(directory: Path, *names: str, text: str = "x\n") -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(directory: Path, include: tuple[str, ...] | None = None, root: str = ".") -> list[str]:
    return [file.path for file in discover(Selection(directory, directory / root, include)).files]


def test_the_usual_kinds_of_text_are_found_by_name(tmp_path: Path) -> None:
    """Nobody should have to list what a project is made of."""
    wanted = [".aiwg/requirements/UC-001.md", ".github/ci.yml", "Makefile", "README", "a.py", "docs/b.rst", "src/c.ts"]
    write(tmp_path, *wanted, "logo.png", "data.csv", "page.html", "de.po", "uv.lock", "notes.ipynb")
    assert found(tmp_path) == wanted
    assert discover(Selection(tmp_path, tmp_path)).skipped == {"not included": 6}


def test_the_default_list_holds_all_that_the_contract_lists(tmp_path: Path) -> None:
    """A project laid out as the contract expects must find nothing that the default misses."""
    listed = (
        ".aiwg/requirements/**/*.md",
        ".aiwg/architecture/**/*.md",
        "src/**/*.ts",
        "test/**/*.ts",
        "docs/**/*.md",
        ".aiwg/research/**/*.md",
    )
    names = [glob.replace("**/*", name) for glob in listed for name in ("a", "deep/er/b")]
    write(tmp_path, *names)
    assert found(tmp_path) == found(tmp_path, listed) == sorted(names)


def test_generated_and_locked_files_are_passed_over(tmp_path: Path) -> None:
    """They repeat what is written elsewhere, at length."""
    write(tmp_path, "app.js", "app.min.js", "api_pb2.py", "pnpm-lock.yaml")
    assert found(tmp_path) == ["app.js"]
    assert discover(Selection(tmp_path, tmp_path)).skipped == {"generated": 3}


def test_ignore_rules_hold_at_every_level_and_the_nearest_wins(tmp_path: Path) -> None:
    """What git does not track is not the project's text."""
    write(
        tmp_path, "a.md", "build/b.md", "sub/build/c.md", "sub/keep.md", "sub/drop.md", "sub/deep/drop.md", "x/own.md"
    )
    write(tmp_path, ".gitignore", text="build/\n*.log\ndrop.md\n# note\n")
    write(tmp_path, "sub/.gitignore", text="!drop.md\r\n/deep\n")
    write(tmp_path, "x/.commonplaceignore", text="own.md\n")
    assert found(tmp_path) == ["a.md", "sub/drop.md", "sub/keep.md"]


def test_nothing_inside_an_ignored_directory_is_taken_back(tmp_path: Path) -> None:
    """Git does not even look there, and neither does the walk."""
    write(tmp_path, "out/a.md", "kept/a.md", "kept/b.md")
    write(tmp_path, ".gitignore", text="out\n!out/a.md\nkept/*\n!kept/a.md\n")
    assert found(tmp_path) == ["kept/a.md"]


def test_the_repository_s_own_exclude_file_is_honoured(tmp_path: Path) -> None:
    """It is where people ignore what is theirs alone."""
    write(tmp_path, "a.md", "mine.md")
    write(tmp_path, ".git/info/exclude", text="mine.md\n")
    assert found(tmp_path) == ["a.md"]


def test_a_root_named_outright_is_walked_though_a_parent_ignores_it(tmp_path: Path) -> None:
    """Who names a directory means it."""
    write(tmp_path, "build/a.md")
    write(tmp_path, ".gitignore", text="build/\n")
    assert found(tmp_path) == []
    assert found(tmp_path, root="build") == ["build/a.md"]


def test_ignore_rules_above_the_root_hold_below_it(tmp_path: Path) -> None:
    """A directory of a repository holds the same files whether it or the whole repository is indexed."""
    project = tmp_path / "project"
    write(tmp_path, ".git/HEAD", "project/docs/a.md", "project/docs/draft.md", "project/docs/out/b.md")
    write(project, "docs/secret/c.md", "docs/deep/note.md", "docs/deep/kept.md", "docs/mine.md")
    write(tmp_path, ".git/info/exclude", text="mine.md\n")
    write(tmp_path, ".gitignore", text="out/\n/project/docs/secret\n/docs\n")
    write(project, ".commonplaceignore", text="draft.md\n/docs/deep/*\n!kept.md\n")
    wanted = ["docs/a.md", "docs/deep/kept.md"]
    assert found(project) == found(project, root="docs") == wanted
    assert found(project, root="docs/deep") == ["docs/deep/kept.md"]


def test_ignore_rules_hold_from_the_project_down_where_there_is_no_repository(tmp_path: Path) -> None:
    """What lies above the project is somebody else's."""
    project = tmp_path / "project"
    write(project, "docs/a.md", "docs/b.md", "docs/c.md")
    write(tmp_path, ".gitignore", text="a.md\n")
    write(project, ".gitignore", text="b.md\n")
    assert found(project, root="docs") == ["docs/a.md", "docs/c.md"]
    assert [file.path for file in discover(Selection(None, project / "docs")).files] == [
        os.path.realpath(project / "docs" / name) for name in ("a.md", "b.md", "c.md")
    ]


@pytest.mark.parametrize(
    "rule", [".demo", ".demo/", ".demo/*", ".demo/**", "/.demo/tree/", "tree", "*", "/*", "**/.demo/**"]
)
def test_a_rule_that_ignores_the_root_itself_is_overruled_and_the_others_hold(tmp_path: Path, rule: str) -> None:
    """Who names an ignored directory means it, and still does not mean the drafts in it."""
    write(tmp_path, ".git/HEAD", ".demo/tree/a.md", ".demo/tree/deep/b.md", ".demo/tree/deep/draft.md")
    write(tmp_path, ".gitignore", text=f"{rule}\ndraft.md\n")
    assert found(tmp_path, root=".demo/tree") == [".demo/tree/a.md", ".demo/tree/deep/b.md"]
    assert found(tmp_path) == []


def test_a_rule_for_what_is_in_the_root_is_not_overruled(tmp_path: Path) -> None:
    """It says something of the files, not of the root, and may have its exceptions."""
    write(tmp_path, "data/a.md", "data/kept.md")
    write(tmp_path, ".gitignore", text="/data/*\n!kept.md\n")
    assert found(tmp_path, root="data") == found(tmp_path) == ["data/kept.md"]


def test_a_list_of_what_is_not_ignored_holds_below_the_root(tmp_path: Path) -> None:
    """Where the root itself is taken back, nothing has to be overruled."""
    write(tmp_path, "src/a.py", "src/b.md", "src/deep/c.py", "d.py")
    write(tmp_path, ".gitignore", text="*\n!*/\n!*.py\n")
    assert found(tmp_path, root="src") == ["src/a.py", "src/deep/c.py"]


def test_a_rule_names_what_it_matches_itself(tmp_path: Path) -> None:
    """A directory that is taken back does not take back what another line ignores in it; so it is in git."""
    write(tmp_path, "logs/a.md", "logs/b.txt", "all/c.md", "all/d.md")
    write(tmp_path, ".gitignore", text="*.md\n!logs/\nall/**\n!all/c.md\n")
    assert found(tmp_path) == ["all/c.md", "logs/b.txt"]


def test_a_nested_file_takes_back_what_its_lines_match_and_no_more(tmp_path: Path) -> None:
    """`***` is `**` to git, and a directory that a nested file takes back keeps what is ignored in it from above."""
    write(
        tmp_path, "x/[d]/logs/a.md", "x/[d]/logs/b.txt", "x/[d]/out/c.txt", "x/d/out/e.txt", "y/deep/f.txt", "y/g.txt"
    )
    write(tmp_path, ".gitignore", text="*.md\nlogs\n")
    write(tmp_path, "x/[d]/.gitignore", text="!logs/\nout\n")
    write(tmp_path, "y/.gitignore", text="***/f.txt\n")
    assert found(tmp_path) == ["x/[d]/logs/b.txt", "x/d/out/e.txt", "y/g.txt"]


def test_excluded_directories_are_never_entered_whatever_the_globs(tmp_path: Path) -> None:
    """A store that finds its own files would index itself for ever; it may have any name, and a link may lead to it."""
    write(tmp_path, "a.md", "memory/store/notes.md")
    (tmp_path / "link").symlink_to(tmp_path / "memory" / "store", target_is_directory=True)
    selection = Selection(tmp_path, tmp_path, ("**",), excluded=(tmp_path / "link", tmp_path / "nowhere"))
    assert [file.path for file in discover(selection).files] == ["a.md"]


@pytest.mark.parametrize("name", ["store", "store/logs", "store/logs/a.log", "link/logs", "store/../store"])
def test_an_excluded_directory_is_refused_by_name_too(tmp_path: Path, name: str) -> None:
    """A store that holds its own logs finds itself; nothing is in there that anybody wrote."""
    write(tmp_path, "a.md", "store/b.md", "store/logs/a.log")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    selection = Selection(tmp_path, tmp_path / name, ("*",), excluded=(tmp_path / "missing", tmp_path / "store"))
    with pytest.raises(UsageError, match=re.escape(repr(str(tmp_path / "store")))):
        discover(selection)


def test_dependencies_caches_and_environments_are_never_entered(tmp_path: Path) -> None:
    """They are other people's text, and far more of it."""
    write(tmp_path, "node_modules/a.js", ".git/b.md", ".commonplace/c.md", "__pycache__/d.py", "env/pyvenv.cfg")
    write(tmp_path, "env/lib/e.py", "target/CACHEDIR.TAG", "target/f.rs", "kept/g.py")
    assert found(tmp_path) == ["kept/g.py"]


def test_globs_of_a_request_replace_the_default_list(tmp_path: Path) -> None:
    """They mean what they mean in .gitignore, relative to the root."""
    write(tmp_path, "src/a.ts", "src/deep/b.ts", "src/c.md", "docs/d.md", "page.html")
    assert found(tmp_path, ("src/**/*.ts", "*.html")) == ["page.html", "src/a.ts", "src/deep/b.ts"]
    assert found(tmp_path, ("**/*.md", "!docs/")) == ["src/c.md"]


@pytest.mark.parametrize("include", [(), ("",), ("# x",)])
def test_a_request_without_a_usable_glob_is_refused(tmp_path: Path, include: tuple[str, ...]) -> None:
    """To find nothing silently would look like an empty project."""
    with pytest.raises(UsageError, match="glob"):
        discover(Selection(tmp_path, tmp_path, include))


@pytest.mark.parametrize(
    "name",
    ".env .env.local .envrc server.pem tls.KEY id_rsa id_ed25519 credentials credentials.json secrets.yaml store.p12 "
    ".netrc .npmrc .pypirc .git-credentials service-account-1.json".split(),
)
def test_files_that_hold_secrets_are_counted_and_never_opened(tmp_path: Path, name: str) -> None:
    """A password that was indexed would be found."""
    write(tmp_path, name)
    discovery = discover(Selection(tmp_path, tmp_path, ("**/*",)))
    assert discovery.files == []
    assert discovery.skipped == {"secret": 1}


@pytest.mark.parametrize(
    "name", [".env.example", "credentials.py", "secrets.ts", "environment.md", "keys.md", "id_rsa.pub"]
)
def test_files_about_secrets_are_not_secrets(name: str) -> None:
    """Code that handles credentials is what people search for."""
    assert not is_secret(name)


def test_large_files_are_counted(tmp_path: Path) -> None:
    """A megabyte of text is a dump, not something a person wrote."""
    write(tmp_path, "small.md", text="x" * 10)
    write(tmp_path, "large.md", text="x" * 11)
    discovery = discover(Selection(tmp_path, tmp_path, max_file_bytes=10))
    assert [file.path for file in discovery.files] == ["small.md"]
    assert discovery.skipped == {"too large": 1}


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    """A link to a parent would never end."""
    write(tmp_path, "a/b.md")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert found(tmp_path) == ["a/b.md"]


def test_links_to_files_are_counted_and_not_followed(tmp_path: Path) -> None:
    """A link must not reach outside, and the same text must not be found twice."""
    project = tmp_path / "project"
    write(project, "AGENTS.md", "hidden/target.dat")
    write(tmp_path, "outside.md")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / "out.md").symlink_to("../outside.md")
    (project / "dangling.md").symlink_to("nowhere")
    (project / "other.md").symlink_to("hidden/target.dat")
    discovery = discover(Selection(project, project))
    assert [file.path for file in discovery.files] == ["AGENTS.md"]
    assert discovery.skipped == {"symbolic link": 4, "not included": 1}
    assert discovery.problems == []


def test_pipes_and_sockets_are_counted_and_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a pipe waits for ever."""
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
        discovery = discover(Selection(tmp_path, tmp_path))
    assert discovery.files == []
    assert discovery.skipped == {"not a regular file": 2}


@pytest.mark.parametrize("name", [".gitignore", "sub/.commonplaceignore", ".git/info/exclude"])
def test_an_ignore_file_that_is_a_pipe_says_nothing(tmp_path: Path, name: str) -> None:
    """Opening a pipe waits for somebody to write to it, so a build would never end."""
    write(tmp_path, "sub/a.md", ".git/info/x")
    os.mkfifo(tmp_path / name)
    program = (
        "import sys; from pathlib import Path; from commonplace.ingest.discover import Selection, discover\n"
        "print([file.path for file in discover(Selection(Path(sys.argv[1]), Path(sys.argv[1], 'sub'))).files])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "['sub/a.md']\n"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("[[:foo:]]*.md", []),
        ("[[:foo:]][ab].md", []),
        ("[![:foo:]]*.md", []),
        ("[b[:a-z:]].md", []),
        ("[[::]]*.md", []),
        ("[[:foo]*.md", ["[.md", "f.md"]),
        ("[[:digit:][:foo:]]*.md", []),
        ("[[:digit:][:upper:]].md", ["0.md", "Z.md"]),
        ("[[:punct:]].md", ["[.md"]),
        ("[[:graph:]].md", ["0.md", "Z.md", "[.md", "b.md", "f.md"]),
        ("[[:cntrl:]].md", []),
        ("[[:print:]]f.md", [" f.md"]),
    ],
)
def test_a_rule_with_an_unknown_class_matches_nothing(tmp_path: Path, line: str, named: list[str]) -> None:
    """So does git; a bracket that took in what follows would ignore files that nobody meant."""
    write(tmp_path, "0.md", "Z.md", "[.md", "b.md", "f.md", " f.md")
    everything = set(found(tmp_path))
    (tmp_path / ".gitignore").write_text(line + "\n")
    assert sorted(everything - set(found(tmp_path))) == named


def test_names_that_cannot_be_stored_are_reported_in_printable_form(tmp_path: Path) -> None:
    """A name that is not UTF-8 fits no database column, and a newline in a name forges a line of output."""
    for name in (b"bad\xff.md", b"two\nlines.md", "größe 文.md".encode()):
        (tmp_path / os.fsdecode(name)).write_text("x")
    discovery = discover(Selection(tmp_path, tmp_path))
    assert [file.path for file in discovery.files] == ["größe 文.md"]
    assert discovery.skipped == {"unprintable name": 2}
    assert all(problem.path.isprintable() for problem in discovery.problems)


def test_a_directory_that_cannot_be_listed_is_reported_and_its_files_stay_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be looked at is not gone."""
    write(tmp_path, "open/a.md", "shut/b.md")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    discovery = discover(Selection(tmp_path, tmp_path))
    assert [file.path for file in discovery.files] == ["open/a.md"]
    assert discovery.unseen == ["shut"]
    assert [(problem.path, problem.reason) for problem in discovery.problems] == [
        ("shut", "cannot be read: Permission denied")
    ]


def test_paths_are_relative_inside_the_project_and_absolute_outside(tmp_path: Path) -> None:
    """A path in a result must lead to the file from where the project is."""
    project = tmp_path / "project"
    write(project, "docs/a.md")
    write(tmp_path, "elsewhere/b.md")
    inside = discover(Selection(project, project / "docs"))
    outside = discover(Selection(project, tmp_path / "elsewhere"))
    base = os.path.realpath(tmp_path)
    assert (inside.root, [file.path for file in inside.files]) == ("docs", ["docs/a.md"])
    assert (outside.root, [file.path for file in outside.files]) == (
        f"{base}/elsewhere",
        [f"{base}/elsewhere/b.md"],
    )
    assert discover(Selection(project, project)).root == "."


def test_a_single_file_can_be_the_root(tmp_path: Path) -> None:
    """It was named, so neither its kind nor an ignore rule matters; that it is a secret does."""
    write(tmp_path, "page.html", ".env")
    write(tmp_path, ".gitignore", text="*\n")
    assert found(tmp_path, root="page.html") == ["page.html"]
    assert discover(Selection(tmp_path, tmp_path / ".env")).skipped == {"secret": 1}


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    """An empty result would delete what was indexed from there."""
    with pytest.raises(NotFoundError, match="nowhere"):
        discover(Selection(tmp_path, tmp_path / "nowhere"))


def test_files_come_sorted_by_path(tmp_path: Path) -> None:
    """The same directory gives the same store, whatever order the file system lists."""
    write(tmp_path, "b/a.md", "a/z.md", "B.md", "a.md")
    assert found(tmp_path) == sorted(["b/a.md", "a/z.md", "B.md", "a.md"])


# What makes a look at a directory another one: what an indexing would see, and nothing else.


@pytest.fixture
def seen(project: Project) -> Callable[[], Look]:
    project.write("a.md", "one\n", LONG_AGO)
    project.write("docs/b.md", "two\n", LONG_AGO)
    project.write("docs/old.md", "three\n", LONG_AGO)
    project.write("picture.png", "four\n", LONG_AGO)
    selection = Selection(project=project.directory, root=project.directory)
    return lambda: look(selection)


def test_a_directory_that_did_not_change_looks_the_same(seen: Callable[[], Look], project: Project) -> None:
    first = seen()
    status = project.directory.stat()
    assert first == seen()
    assert (first.files, first.devices, first.root) == (3, {status.st_dev}, (status.st_dev, status.st_ino))


@pytest.mark.parametrize(
    "change",
    [
        lambda project: project.write("a.md", "ONE\n", LONG_AGO + 1),
        lambda project: project.write("a.md", "longer\n", LONG_AGO),
        lambda project: project.write("c.md", "new\n", LONG_AGO),
        lambda project: (project.directory / "a.md").unlink(),
        lambda project: (project.directory / "a.md").rename(project.directory / "z.md"),
        lambda project: (project.directory / "docs").rename(project.directory / "texts"),
        lambda project: project.write(".gitignore", "old.md\n", LONG_AGO),
        lambda project: project.write("docs/.commonplaceignore", "*\n!b.md\n", LONG_AGO),
        lambda project: project.write("docs/CACHEDIR.TAG", "", LONG_AGO),
    ],
    ids="edited grown new deleted renamed directory-renamed ignored ignored-below cache".split(),
)
def test_what_an_indexing_would_see_makes_another_look(
    seen: Callable[[], Look], project: Project, change: Callable[[Project], object]
) -> None:
    before = seen()
    change(project)
    assert seen() != before


@pytest.mark.parametrize("length", range(1, 40))
def test_two_files_that_change_places_make_another_look(
    seen: Callable[[], Look], project: Project, length: int
) -> None:
    """The digest is a sum, of which each term is of one file and its own path; whatever their sizes are."""
    project.write("b.md", "x" * length + " longer than one\n", LONG_AGO)
    before = seen()
    a, b, aside = (project.directory / name for name in ("a.md", "b.md", "x.md"))
    for file, name in ((a, aside), (b, a), (aside, b)):
        file.rename(name)
    assert seen() != before


def test_what_no_indexing_takes_makes_no_other_look(seen: Callable[[], Look], project: Project) -> None:
    """A build that writes its products all day would else start runs all day."""
    before = seen()
    project.write("picture.png", "other\n", LONG_AGO + 1)
    project.write(".git/HEAD", "ref: refs/heads/other\n", LONG_AGO + 1)
    project.write("node_modules/a.md", "other\n", LONG_AGO + 1)
    assert seen() == before


def test_how_long_it_took_is_told_and_not_compared(project: Project) -> None:
    ticks = iter([1.0, 3.5])
    found = look(Selection(project=None, root=project.directory), lambda: next(ticks))
    assert found.seconds == 2.5
    assert found == replace(found, seconds=9.0)


def test_an_empty_directory_has_no_files_and_no_disks(project: Project) -> None:
    found = look(Selection(project=None, root=project.directory))
    assert (found.files, found.digest, found.devices) == (0, 0, frozenset())


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file or directory"):
        look(Selection(project=None, root=tmp_path / "gone"))
