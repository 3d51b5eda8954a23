"""Which providers there are, where each one's server is and which key it takes: names and environment in, access out.

Keys come from the environment and from nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.errors import ProviderError, UsageError
from commonplace.models.addresses import Address, address_of, ollama_address, proxy_for
from commonplace.models.client import Access, without_key

if TYPE_CHECKING:
    from commonplace.settings.model import ModelSettings

PROVIDERS: Final = ("openai", "anthropic", "ollama", "local")
"""`local` is another name for `ollama`."""
DEFAULT_PROVIDER: Final = "openai"
KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""The variables that keys come from."""


@dataclass(frozen=True, slots=True)
class Named:
    """A model's name in its two parts."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def named(text: str) -> Named:
    """Read a model's name: `provider:model` or `provider/model`; without a provider it is OpenAI's.

    What stands before the first colon or slash is a provider only if it is one of ours: models of OpenAI and of servers
    that speak like it are called `ft:gpt-4o:team` and `meta-llama/Llama-3` too.

    Raises:
        UsageError: it is empty or no name.
    """
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise UsageError(f"the model's name is {text!r:.80}", remedy=f"name it as {DEFAULT_PROVIDER}:<model>")
    name = text.strip()
    for mark in (":", "/"):
        provider, _, model = name.partition(mark)
        if provider in PROVIDERS and provider != name:
            if not model:
                raise UsageError(f"{text!r} names no model", remedy=f"name it as {provider}:<model>")
            return Named(provider, model)
    return Named(DEFAULT_PROVIDER, name)


@dataclass(frozen=True, slots=True)
class Place:
    """What decides where a request goes.

    Attributes:
        base_url: in place of the provider's own address; "" is the one that settings, environment or provider name.
        sends_key: False where the address comes from someone who may not have the key, such as a foreign file.
        environ: None is the process's own.
    """

    base_url: str = ""
    sends_key: bool = True
    settings: ModelSettings | None = None
    environ: Mapping[str, str] | None = None


def access(provider: str, place: Place) -> Access:
    """Return how a provider is reached.

    Raises:
        ProviderError: it needs a key and there is none, or the key would go over an open network unencrypted.
        UsageError: an address or a key is malformed.
    """
    environ = os.environ if place.environ is None else place.environ
    found = _OPENERS[provider](place, environ)
    if found.key and found.address.scheme == "http" and not found.address.is_inside:
        raise ProviderError(
            f"the key in {found.variable} would go to {found.address} unencrypted", remedy="use an https address"
        )
    return found


def without_keys(text: str, environ: Mapping[str, str]) -> str:
    """Return a text without the keys of an environment: what is not ours may have put them into an error."""
    for variable in KEYS:
        text = without_key(text, environ.get(variable, "").strip())
    return text


def _openai(place: Place, environ: Mapping[str, str]) -> Access:
    own = "https://api.openai.com/v1"
    address = _address(place, environ, "openai_url", "OPENAI_BASE_URL", own)
    key = _key(environ, "OPENAI_API_KEY", is_needed=str(address) == own) if place.sends_key else ""
    return Access("openai", address, key, variable="OPENAI_API_KEY", proxy=proxy_for(address, environ))


def _anthropic(place: Place, environ: Mapping[str, str]) -> Access:
    own = "https://api.anthropic.com"
    address = _address(place, environ, "anthropic_url", "ANTHROPIC_BASE_URL", own)
    key = _key(environ, "ANTHROPIC_API_KEY", is_needed=str(address) == own) if place.sends_key else ""
    if not address.path.endswith("/v1"):
        # Their own clients take the address without the version.
        address = Address(address.scheme, address.host, address.port, f"{address.path}/v1")
    return Access(
        "anthropic",
        address,
        key,
        key_header=("x-api-key", ""),
        variable="ANTHROPIC_API_KEY",
        headers={"anthropic-version": "2023-06-01"},
        proxy=proxy_for(address, environ),
    )


def _ollama(place: Place, environ: Mapping[str, str]) -> Access:
    written = place.base_url or (place.settings.ollama_url if place.settings else "")
    address = address_of(written) if written else ollama_address(environ.get("OLLAMA_HOST", "") or "127.0.0.1")
    if not address.path:
        address = Address(address.scheme, address.host, address.port, "/v1")
    return Access("ollama", address, proxy=proxy_for(address, environ))


_OPENERS: Final = {"openai": _openai, "anthropic": _anthropic, "ollama": _ollama, "local": _ollama}


def _address(place: Place, environ: Mapping[str, str], setting: str, variable: str, own: str) -> Address:
    """Return the address that is named nearest: by the call, by our settings, by the provider's variable."""
    if place.base_url:
        return address_of(place.base_url)
    written = getattr(place.settings, setting) if place.settings else ""
    if written:
        return address_of(written, f"models.{setting}")
    return address_of(environ.get(variable, "").strip() or own, variable)


def _key(environ: Mapping[str, str], variable: str, *, is_needed: bool) -> str:
    key = environ.get(variable, "").strip()
    if not key and is_needed:
        raise ProviderError(f"{variable} is not set", remedy=f"set it to your key: export {variable}=…")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(f"{variable} holds characters that no key has", remedy="set it to the key alone")
    return key
