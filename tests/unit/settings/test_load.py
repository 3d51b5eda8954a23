"""Settings: layers, origins, and what each layer may not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import SettingsError
from commonplace.settings import Overrides, Settings, keys, load, save_overrides


class Place:
    """A project with a user file beside it, so that nothing of the machine is read."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.store = self.project / ".commonplace"
        self.store.mkdir(parents=True)
        self.user_file = root / "user" / "settings.toml"
        self.user_file.parent.mkdir()
        self.project_file = self.project / "commonplace.toml"

    def load(self, flags: dict[str, object] | None = None, **environment: str) -> Settings:
        return load(flags, environment=environment, start=self.project, user_file=self.user_file)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def origin(settings: Settings, dotted: str) -> str:
    return next(settings.origin(key) for key in keys() if key.dotted == dotted)


def test_defaults_hold_where_no_layer_speaks(place: Place) -> None:
    """The contract's defaults are what a user gets who writes no settings at all."""
    settings = place.load()
    assert (settings.search.limit, settings.search.stage1_limit, settings.search.method) == (10, 100, "two-stage")
    assert (settings.index.chunk_tokens, settings.index.chunk_overlap) == (512, 50)
    assert settings.index.max_file_bytes == 1_048_576
    assert settings.search.min_score is None
    assert (settings.embedder.name, settings.embedder.memories, settings.embedder.artifacts) == ("", "minilm", "static")
    assert origin(settings, "search.limit") == "default"


def test_each_layer_wins_over_the_one_before(place: Place) -> None:
    """Defaults < user file < project file < the store's file < environment < flags, and the origin tells."""
    place.user_file.write_text("[search]\nlimit = 1\n")
    assert (place.load().search.limit, origin(place.load(), "search.limit")) == (1, str(place.user_file))
    place.project_file.write_text("[search]\nlimit = 2\n")
    assert (place.load().search.limit, origin(place.load(), "search.limit")) == (2, str(place.project_file))
    save_overrides(place.store, {"search.limit": 3})
    assert (place.load().search.limit, origin(place.load(), "search.limit")) == (3, str(place.store / "settings.json"))
    settings = place.load(COMMONPLACE_SEARCH_LIMIT="4")
    assert settings.search.limit == 4
    assert origin(settings, "search.limit") == "environment variable COMMONPLACE_SEARCH_LIMIT"
    settings = place.load({"search.limit": 5}, COMMONPLACE_SEARCH_LIMIT="4")
    assert (settings.search.limit, origin(settings, "search.limit")) == (5, "flag")


def test_flags_that_were_not_given_leave_the_layers_below_alone(place: Place) -> None:
    """The command line passes every option; None means that the person did not use it."""
    assert place.load({"search.limit": None}, COMMONPLACE_SEARCH_LIMIT="4").search.limit == 4


def test_unknown_key_in_a_file_names_file_key_and_closest_match(place: Place) -> None:
    """A misspelt setting that is silently ignored costs its author an afternoon."""
    place.user_file.write_text("[search]\nlimt = 1\n")
    with pytest.raises(SettingsError) as caught:
        place.load()
    assert str(caught.value) == f"search.limt in {place.user_file} is not a setting; did you mean search.limit?"


@pytest.mark.parametrize("text", ["[serch]\nlimit = 1\n", "limit = 1\n", "[search.limit]\nx = 1\n"])
def test_unknown_section_bare_key_and_table_for_a_value_are_refused(place: Place, text: str) -> None:
    """There is no place in a settings file where a typing error goes unnoticed."""
    place.user_file.write_text(text)
    with pytest.raises(SettingsError, match=r"settings\.toml"):
        place.load()


def test_unknown_variable_with_our_prefix_is_refused(place: Place) -> None:
    """The environment follows the rule of the files: unknown is an error, with the closest match."""
    with pytest.raises(SettingsError, match="did you mean COMMONPLACE_SEARCH_LIMIT"):
        place.load(COMMONPLACE_SEARCH_LIMITS="4")


def test_variable_that_names_test_data_is_no_setting(place: Place) -> None:
    """COMMONPLACE_DATA tells tests where data lies; it must not make every command fail."""
    assert place.load(COMMONPLACE_DATA="/data", HOME="/home/x").search.limit == 10


@pytest.mark.parametrize("address", ["https://memory.example", "mysql://ann:secret@db/x"])
def test_an_address_that_no_store_has_is_not_taken_for_a_directory(place: Place, address: str) -> None:
    """`init` would make a directory `https:`, and a password would stand in its name."""
    with pytest.raises(SettingsError, match=r"begins with \w+:// \(flag\).*postgresql://") as caught:
        place.load({"store.path": address})
    assert "secret" not in str(caught.value)


def test_environment_reads_numbers_lists_and_auto(place: Place) -> None:
    """A variable is text; it stands for the same values that TOML can state."""
    settings = place.load(
        COMMONPLACE_SEARCH_MIN_SCORE="0.25",
        COMMONPLACE_INDEX_INCLUDE="src/**/*.py, docs/*.md",
        COMMONPLACE_NAMESPACE="ann",
    )
    assert settings.search.min_score == 0.25
    assert settings.index.include == ("src/**/*.py", "docs/*.md")
    assert settings.store.namespace == "ann"
    assert place.load(COMMONPLACE_SEARCH_MIN_SCORE="auto").search.min_score is None


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[search]\nlimit = 0\n", "search.limit is 0"),
        ("[search]\nlimit = 1001\n", "give it a whole number from 1 to 1000"),
        ("[search]\nlimit = true\n", "search.limit is True"),
        ('[search]\nlimit = "10"\n', "search.limit is '10'"),
        ("[search]\nmin_score = 1.5\n", "give it a number from 0 to 1 or 'auto'"),
        ("[search]\nmin_score = nan\n", "search.min_score is nan"),
        ('[search]\nmethod = "magic"\n', "give it one of bm25, semantic, two-stage"),
        ("[index]\ninclude = [1]\n", "give it a list of globs"),
        ("[index]\nchunk_tokens = 32\nchunk_overlap = 16\n", "give it a whole number from 0 to 15"),
    ],
)
def test_refused_value_names_value_limit_and_origin(place: Place, toml: str, told: str) -> None:
    """The message alone must be enough to correct the file."""
    place.user_file.write_text(toml)
    with pytest.raises(SettingsError) as caught:
        place.load()
    assert told in str(caught.value)
    assert str(place.user_file) in str(caught.value)


def test_broken_toml_names_file_and_line(place: Place) -> None:
    """The line number is what an editor needs."""
    place.project_file.write_text("[search]\nlimit = = 3\n")
    with pytest.raises(SettingsError, match=r"commonplace\.toml is not valid TOML: .*line 2"):
        place.load()


def test_file_that_is_no_text_is_a_settings_error(place: Place) -> None:
    """A UTF-16 file is a wrong file, not a crash."""
    place.user_file.write_bytes(b"\xff\xfe[\x00")
    with pytest.raises(SettingsError, match="is not valid TOML"):
        place.load()


def test_toml_that_nests_too_deeply_is_a_settings_error(place: Place) -> None:
    """A project's file comes with a clone; it must not break the program."""
    place.project_file.write_text("[search]\nlimit = " + "[" * 5000 + "]" * 5000 + "\n")
    with pytest.raises(SettingsError, match=r"commonplace\.toml is not valid TOML: nested too deeply"):
        place.load()


def test_a_key_of_too_many_parts_is_a_settings_error(place: Place) -> None:
    """The memory that the parser takes grows with their square: a file of 200 kB that came with a clone took it all."""
    place.project_file.write_text("a." * 1_000 + "a = 1\n")
    with pytest.raises(SettingsError, match=r"commonplace\.toml is not valid TOML: nested too deeply"):
        place.load()


def test_directory_in_place_of_a_settings_file_is_told_as_such(place: Place) -> None:
    """Its permissions are right; it is the wrong thing."""
    place.project_file.mkdir()
    with pytest.raises(SettingsError) as caught:
        place.load()
    assert str(caught.value).startswith(f"{place.project_file} cannot be read: it is a directory")
    assert "permissions" not in str(caught.value)


def test_project_file_may_not_choose_the_store(place: Place) -> None:
    """It came with somebody's clone: it could point at a store that another program reads."""
    place.project_file.write_text('[store]\npath = "/elsewhere"\n')
    with pytest.raises(SettingsError, match=r"store\.path, which a project's own file may not"):
        place.load()


@pytest.mark.parametrize("glob", ["/etc/*.md", "../other/**", "~/notes/*.md", "C:\\x\\*.md", "src/../../x", "!../x"])
@pytest.mark.parametrize("file", ["project", "store"])
def test_project_may_not_reach_outside_itself(place: Place, glob: str, file: str) -> None:
    """Cloning a repository and indexing it must not read the rest of the disk; the store may come with it."""
    if file == "project":
        place.project_file.write_text(f"[index]\ninclude = ['{glob}']\n")
    else:
        save_overrides(place.store, {"index.include": (glob,)})
    with pytest.raises(SettingsError, match="outside the project"):
        place.load()


def test_user_file_may_set_what_a_project_may_not(place: Place, tmp_path: Path) -> None:
    """The person at the keyboard decides over their own machine."""
    place.user_file.write_text(f"[store]\npath = '{tmp_path / 'mine'}'\n")
    settings = place.load()
    assert settings.store.path == str(tmp_path / "mine")
    assert settings.project is None


def test_store_is_found_upward_from_a_directory_below(place: Place) -> None:
    """As git does: a command works from anywhere inside the project, and reads that project's file."""
    place.project_file.write_text("[search]\nlimit = 7\n")
    below = place.project / "a" / "b"
    below.mkdir(parents=True)
    settings = load(environment={}, start=below, user_file=place.user_file)
    assert settings.store.path == str(place.store)
    assert settings.search.limit == 7
    assert settings.project == place.project


def test_named_store_brings_its_own_project_file(place: Place, tmp_path: Path) -> None:
    """`--store X/.commonplace` means the project X, wherever the command was typed."""
    place.project_file.write_text("[search]\nlimit = 7\n")
    settings = load({"store.path": str(place.store)}, environment={}, start=tmp_path, user_file=place.user_file)
    assert settings.search.limit == 7


def test_saved_overrides_are_replaced_and_removed(place: Place) -> None:
    """A build with another document must leave nothing of the one before."""
    save_overrides(place.store, {"search.limit": 3, "index.include": ("a/*.md",)})
    save_overrides(place.store, {"index.include": ("b/*.md",)})
    assert place.load().search.limit == 10
    assert place.load().index.include == ("b/*.md",)
    save_overrides(place.store, {})
    assert place.load().index.include == ()
    assert list(place.store.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "[]", "[" * 200_000, '{"serch": {"limit": 1}}'])
def test_damaged_saved_overrides_are_a_settings_error(place: Place, content: str) -> None:
    """The remedy is told; nothing is guessed."""
    (place.store / "settings.json").write_text(content)
    with pytest.raises(SettingsError, match=r"settings\.json"):
        place.load()


def test_every_setting_has_a_description_a_range_and_its_own_variable() -> None:
    """The manual's table and `settings show` are made from these."""
    declared = keys()
    assert all(key.rule.description and key.range for key in declared)
    assert len({key.environment for key in declared}) == len(declared)


def test_a_password_is_in_no_file(tmp_path: Path) -> None:
    """The memory specialist's contract has it beside the address; a file is copied, shared and committed."""
    file = tmp_path / "settings.toml"
    file.write_text('[graph]\ngraph_password = "secret"\n')
    with pytest.raises(SettingsError, match="set COMMONPLACE_GRAPH_PASSWORD") as caught:
        load(user_file=file, start=tmp_path, environment={"COMMONPLACE_GRAPH_PASSWORD": "secret"})
    assert "secret" not in str(caught.value)


def test_a_project_may_say_nothing_of_the_store_of_models_and_of_specs() -> None:
    """A clone must not lead what is stored elsewhere, spend money, run a program, send texts, or instruct models."""
    refused = {key.dotted for key in keys() if not key.rule.project}
    others = {"store.path", "index.watch", "knowledge.rerank", "knowledge.rerank_model", "graph.extractor"}
    server = ("backend", "graph_uri", "graph_user", "server", "group", "embedder", "llm_provider", "timeout_s")
    others |= {f"graph.{name}" for name in server}
    # How texts are bundled and vectors kept, which a document may say, changes nothing of what is sent where.
    harmless = {f"models.{name}" for name in ("batch_size", "embedding_cache", "embedding_cache_minutes")}
    closed = {key.dotted for key in keys() if key.section in ("models", "specs", "ledger")}
    assert refused == others | (closed - harmless)


def test_every_default_is_itself_an_allowed_value(place: Place) -> None:
    """Writing a default into a file changes nothing."""
    defaults = {key.dotted: key.default for key in keys() if key.dotted != "store.path"}
    assert place.load(defaults).index == Settings().index


def test_overrides_stand_in_place_of_what_the_store_keeps(place: Place) -> None:
    """A build tries a document's settings before it keeps them: weaker than the environment, as they will be then."""
    save_overrides(place.store, {"search.limit": 3, "search.stage1_limit": 30})
    given = Overrides({"search.limit": 4, "index.include": ("a/*.md",)}, "retrieval.yaml")
    settings = load(overrides=given, environment={}, start=place.project, user_file=place.user_file)
    assert (settings.search.limit, settings.search.stage1_limit, settings.index.include) == (4, 100, ("a/*.md",))
    assert origin(settings, "search.limit") == "retrieval.yaml"
    environment = {"COMMONPLACE_SEARCH_LIMIT": "5"}
    assert load(overrides=given, environment=environment, start=place.project).search.limit == 5
    assert place.load().search.limit == 3


def test_overrides_may_not_reach_outside_the_project(place: Place) -> None:
    """They are held to what a project's own file may say, wherever they come from."""
    with pytest.raises(SettingsError, match=r"retrieval\.yaml sets index.include to '\.\./x', which lies outside"):
        load(overrides=Overrides({"index.include": ("../x",)}, "retrieval.yaml"), environment={}, start=place.project)


def test_defaults_alone_name_no_store() -> None:
    """Only `load` looks for a store; whoever makes settings by hand must name it."""
    assert Settings().store.path == ""
