"""Say from a file's name what language its text is in; it knows names, no content and no directories.

The tables below are also what a project is searched for when nobody says which files to index.
"""

from __future__ import annotations

from typing import Final, Literal

Language = Literal["markdown", "restructuredtext", "asciidoc", "text", "config", "python", "code"]

PROSE: Final[frozenset[Language]] = frozenset({"markdown", "restructuredtext", "asciidoc", "text"})

_SUFFIXES: Final[dict[Language, str]] = {
    "markdown": "md markdown mdx mdc qmd",
    "restructuredtext": "rst txt",
    "asciidoc": "adoc asciidoc",
    "text": "org tex",
    "config": "toml yaml yml ini cfg conf properties gradle mk cmake dockerfile",
    "python": "py pyi",
    "code": (
        "ts tsx mts cts js jsx mjs cjs vue svelte java kt kts scala groovy go rs c h cc cpp cxx hh hpp hxx m mm cs fs "
        "vb swift rb rake php pl pm lua r jl dart ex exs erl hrl hs elm clj cljs cljc ml mli nim zig v sol sql sh bash "
        "zsh fish ps1 bat pyx pxd proto graphql gql thrift tf hcl nix css scss sass less vim el lisp scm f90 f95 pas "
        "adb ads cu cuh glsl wgsl"
    ),
}
_NAMES: Final[dict[str, Language]] = {
    "makefile": "config",
    "gnumakefile": "config",
    "dockerfile": "config",
    "containerfile": "config",
    "justfile": "config",
    "procfile": "config",
    "jenkinsfile": "code",
    "vagrantfile": "code",
    "rakefile": "code",
    "gemfile": "code",
    "cmakelists.txt": "config",
    "readme": "text",
    "changelog": "text",
    "contributing": "text",
    "authors": "text",
    "package.json": "config",
    "tsconfig.json": "config",
    "composer.json": "config",
    "deno.json": "config",
}

BY_SUFFIX: Final[dict[str, Language]] = {
    suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
"""Language by suffix, lower case, without the dot."""


def language_of(name: str) -> Language | None:
    """Return the language of a file by its name (no directories), or None for a kind that is not indexed unasked."""
    lowered = name.lower()
    by_name = _NAMES.get(lowered)
    if by_name is not None:
        return by_name
    stem, dot, suffix = lowered.rpartition(".")
    return BY_SUFFIX.get(suffix) if dot and stem else None
