"""Strategies of agents in the settings: the user's own, both spellings, and where each value comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import SettingsError
from commonplace.settings import Settings, keys, load, save_overrides
from commonplace.settings.agents import STRATEGIES, strategy_name


def loaded(directory: Path, text: str = "", **environment: str) -> Settings:
    file = directory / "settings.toml"
    file.write_text(text)
    store = directory / "project" / ".commonplace"
    store.mkdir(parents=True, exist_ok=True)
    return load({"store.path": str(store)}, environment=environment, user_file=file)


def origins(settings: Settings, agent: str) -> dict[str, str]:
    return {key.name: settings.origin(key) for key in settings.all_keys() if key.section == f"agents.{agent}"}


def test_without_a_setting_there_are_the_strategies_that_we_name(tmp_path: Path) -> None:
    assert loaded(tmp_path).agents == STRATEGIES == Settings().agents


@pytest.mark.parametrize("name", ["test-engineer", "test_engineer"])
def test_an_agent_is_the_same_in_both_spellings(tmp_path: Path, name: str) -> None:
    held = loaded(tmp_path, f"[agents.{name}]\ntop_k = 4\n")
    assert held.agents["test-engineer"].top_k == 4
    assert held.agents["test-engineer"].threshold == 0.65
    assert set(held.agents) == set(STRATEGIES)
    assert origins(held, "test-engineer")["top_k"] == str(tmp_path / "settings.toml")
    assert origins(held, "test-engineer")["threshold"] == "default"


def test_both_spellings_in_one_file_are_refused(tmp_path: Path) -> None:
    """Which of the two holds would depend on their order."""
    text = "[agents.test-engineer]\ntop_k = 4\n[agents.test_engineer]\ntop_k = 5\n"
    with pytest.raises(SettingsError, match=r"agents\.test-engineer\.top_k twice"):
        loaded(tmp_path, text)


def test_what_an_own_agent_leaves_out_is_that_of_default(tmp_path: Path) -> None:
    held = loaded(tmp_path, "[agents.default]\nthreshold = 0.5\n[agents.poet]\ncontext_types = []\n")
    assert held.agents["poet"].context_types == ()
    assert (held.agents["poet"].threshold, held.agents["poet"].top_k) == (0.5, 10)
    assert held.agents["integrator"].threshold == 0.65


def test_layers_join_option_by_option(tmp_path: Path) -> None:
    """The user's file may raise one option of a strategy that the store keeps."""
    loaded(tmp_path)
    save_overrides(tmp_path / "project" / ".commonplace", {"agents.poet.top_k": 3, "agents.poet.tag_filter": ("a",)})
    held = loaded(tmp_path, "[agents.poet]\ntop_k = 9\nthreshold = 0.1\n", COMMONPLACE_AGENTS_POET_PHASE_FILTER="a, b")
    poet = held.agents["poet"]
    assert (poet.top_k, poet.threshold, poet.tag_filter, poet.phase_filter) == (3, 0.1, ("a",), ("a", "b"))
    assert origins(held, "poet")["phase_filter"] == "environment variable COMMONPLACE_AGENTS_POET_PHASE_FILTER"
    variable = {"COMMONPLACE_AGENTS_TEST_ENGINEER_TOP_K": "2"}
    assert loaded(tmp_path, "", **variable).agents["test-engineer"].top_k == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[agents]\ntop_k = 3\n", "agents.top_k in"),
        ("[agents.poet]\ntopk = 3\n", "agents.poet.topk in"),
        ("[agents.poet.top_k]\nx = 3\n", "agents.poet.top_k is"),
        ('[agents."a.b"]\ntop_k = 3\n', "agents.a.b.top_k in"),
        ('[agents.""]\ntop_k = 3\n', "agents..top_k in"),
        ("agents = 3\n", "agents in"),
        ("[agents.poet]\ntop_k = 0\n", "give it a whole number from 1 to 1000"),
        ("[agents.poet]\nthreshold = 1.5\n", "give it a number from 0 to 1"),
        ('[agents.poet]\ncontext_types = ["song"]\n', "give it a list of requirement, architecture, test, code"),
        ('[agents.poet]\ncontext_types = "code"\n', "give it a list of requirement, architecture, test, code"),
    ],
)
def test_a_strategy_with_a_fault_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    assert told in str(caught.value)


def test_settings_of_own_agents_are_shown_with_the_others(tmp_path: Path) -> None:
    held = loaded(tmp_path, "[agents.poet]\ntop_k = 3\n")
    shown = [key.dotted for key in held.all_keys()]
    assert shown[: len(keys())] == [key.dotted for key in keys()]
    assert shown[len(keys()) :] == [
        f"agents.poet.{name}" for name in ("context_types", "top_k", "threshold", "phase_filter", "tag_filter")
    ]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("security-auditor", "security-auditor"),
        ("security_auditor", "security-auditor"),
        ("a-plugin:security-auditor", "security-auditor"),
        ("Explore", None),
        ("default", None),
        ("", None),
    ],
)
def test_an_agent_of_a_client_has_a_strategy_by_its_name_or_none(written: str, name: str | None) -> None:
    """That of `default` is for who asks for a strategy, and not for every agent that a client has."""
    assert strategy_name(written, STRATEGIES) == name
