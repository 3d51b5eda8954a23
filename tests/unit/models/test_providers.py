"""Addresses of model servers as people write them, the names of models, and which way leads there."""

from __future__ import annotations

import pytest

from commonplace.errors import CommonplaceError, ProviderError, UsageError
from commonplace.models.providers import ModelName, access, address_of, ollama_address, parse_model_name
from commonplace.settings import ModelSettings

KEYS = {"OPENAI_API_KEY": "sk-one", "ANTHROPIC_API_KEY": "sk-two"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
        (" http://127.0.0.1:8000/v1 ", "http://127.0.0.1:8000/v1"),
        ("HTTPS://Example.COM:443", "https://example.com"),
        ("http://[::1]:9/x", "http://[::1]:9/x"),
        ("https://example.com/mödelle/v1", "https://example.com/m%C3%B6delle/v1"),
        ("https://modèle.example/v1", "https://xn--modle-6ra.example/v1"),
    ],
)
def test_an_address_is_read_and_shown(written: str, read: str) -> None:
    """A slash at the end, a default port and capitals make no difference."""
    assert str(address_of(written)) == read


@pytest.mark.parametrize(
    "written",
    [
        "",
        "api.openai.com",
        "ftp://x",
        "file:///etc/passwd",
        "https://",
        "http://x:99999",
        "http://x:y",
        "https://a..b/v1",
        f"https://{'a' * 64}.example/v1",
        "https://x/v1?key=hidden-secret",
        "https://x/v1#hidden-secret",
        "https://me:hidden-secret@x/v1",
        "ftp://me:hidden-secret@x/v1",
        "https://x/v1\r\nX-Evil: 1",
        "http://[::1",
        "https://a b/",
    ],
)
def test_what_is_no_address_is_refused_without_telling_a_password(written: str) -> None:
    """Keys come from the environment; in an address they would be shown with every error."""
    with pytest.raises(UsageError) as raised:
        address_of(written)
    assert "give it as https://" in str(raised.value)
    assert "hidden-secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("gpu-box", "http://gpu-box:11434"),
        ("http://gpu-box:1/", "http://gpu-box:1"),
        ("https://ollama.example", "https://ollama.example"),
        ("[::]:1", "http://[::1]:1"),
        ("[::1]", "http://[::1]:11434"),
        ('"gpu-box"', "http://gpu-box:11434"),
    ],
)
def test_ollama_is_found_where_its_own_variable_says(written: str, read: str) -> None:
    """It holds what the server listens on, in the forms that Ollama takes."""
    assert str(ollama_address(written)) == read


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai:gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("gpt-4o", "openai", "gpt-4o"),
        ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("ollama:qwen2.5:7b", "ollama", "qwen2.5:7b"),
        ("meta-llama/Llama-3-8B", "openai", "meta-llama/Llama-3-8B"),
        ("ft:gpt-4o:team:x", "openai", "ft:gpt-4o:team:x"),
        ("openai", "openai", "openai"),
    ],
)
def test_a_models_name_says_who_provides_it(text: str, provider: str, model: str) -> None:
    """Contract: a name without a provider is OpenAI's."""
    assert parse_model_name(text) == ModelName(provider, model)


@pytest.mark.parametrize("text", ["", " ", "openai:", "anthropic/", "a\nb", "ollama:\x00"])
def test_a_name_without_a_model_is_refused(text: str) -> None:
    """It would be sent as it is, and refused far away."""
    with pytest.raises(UsageError, match="name"):
        parse_model_name(text)


def test_each_provider_is_found_by_its_own_variables() -> None:
    """The names that the vendors' own programs read."""
    environ = {
        **KEYS,
        "OPENAI_BASE_URL": "https://one.example/v1",
        "ANTHROPIC_BASE_URL": "https://two.example",
        "OLLAMA_HOST": "three:3",
    }
    found = {provider: access(provider, environ=environ) for provider in ("openai", "anthropic", "ollama")}
    assert {name: str(each.address) for name, each in found.items()} == {
        "openai": "https://one.example/v1",
        "anthropic": "https://two.example/v1",
        "ollama": "http://three:3/v1",
    }
    assert {name: each.key for name, each in found.items()} == {
        "openai": "sk-one",
        "anthropic": "sk-two",
        "ollama": "",
    }


def test_our_setting_wins_over_the_providers_variable_and_the_call_over_both() -> None:
    """The nearest word counts."""
    environ = {**KEYS, "OPENAI_BASE_URL": "https://far.example/v1", "ANTHROPIC_BASE_URL": "https://far.example"}
    settings = ModelSettings(
        openai_url="https://near.example/v1", anthropic_url="https://near.example/v1", ollama_url="http://near:1"
    )
    for provider in ("openai", "anthropic", "ollama"):
        assert access(provider, settings=settings, environ=environ).address.host.startswith("near")
        nearest = access(provider, base_url="https://here.example/v1", settings=settings, environ=environ)
        assert nearest.address.host == "here.example"


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_the_providers_own_address_needs_a_key(provider: str, variable: str) -> None:
    """Told before anything is sent, with the variable's name."""
    for environ in ({}, {variable: "  "}):
        with pytest.raises(ProviderError, match=f"{variable} is not set; set it to your key"):
            access(provider, environ=environ)


def test_another_address_needs_no_key() -> None:
    """Servers on one's own machine have none."""
    assert access("openai", base_url="http://127.0.0.1:1234/v1", environ={}).key == ""


def test_an_address_from_a_foreign_file_gets_no_key() -> None:
    """It could be anyone's."""
    for provider in ("openai", "anthropic"):
        found = access(provider, base_url="https://anyone.example/v1", sends_key=False, environ=KEYS)
        assert found.key == ""
        assert not {"Authorization", "x-api-key"} & found.headers.keys()


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("http://models.example/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://127.example.com/v1", False),
        ("https://models.example/v1", True),
        ("http://127.0.0.1:1/v1", True),
        ("http://192.168.1.5/v1", True),
        ("http://gpu-box:8000/v1", True),
        ("http://gpu.internal/v1", True),
    ],
)
def test_a_key_goes_over_an_open_network_only_encrypted(url: str, is_sent: bool) -> None:
    """Anyone on the way could read it."""
    if is_sent:
        assert access("openai", base_url=url, environ=KEYS).key == "sk-one"
        return
    with pytest.raises(ProviderError, match=r"would go to http://.* unencrypted; use an https address"):
        access("openai", base_url=url, environ=KEYS)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-a b", "sk-ä", "sk-\x00"])
def test_a_key_with_strange_characters_is_refused_and_not_shown(key: str) -> None:
    """It would break the header, and the library's own message would show it."""
    with pytest.raises(CommonplaceError, match="OPENAI_API_KEY holds characters that no key has") as raised:
        access("openai", environ={"OPENAI_API_KEY": key})
    assert key not in str(raised.value)
