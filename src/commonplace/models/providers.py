"""Providers of remote models: addresses and keys from names, settings and the environment.

Keys come from the environment only.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, urlsplit

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import ProviderError, UsageError
from commonplace.models.client import Access, without_key
from commonplace.settings.schema import ModelSettings

OLLAMA_PORT: Final = 11434
_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = "/%!$&'()*+,;=:@~"
_INSIDE: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


@dataclass(frozen=True, slots=True)
class Address:
    """A scheme, host and port with the path that requests begin with; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        number = _number(self.host)
        return self.host == "localhost" if number is None else number.is_loopback

    @property
    def is_inside(self) -> bool:
        """Whether its name is that of this machine or of one in a private network."""
        number = _number(self.host)
        if number is None:
            return "." not in self.host or self.host.endswith(_INSIDE)
        return number.is_private

    @property
    def authority(self) -> str:
        """Host and port as a request names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def address_of(text: str, what: str = "the address") -> Address:
    """Read an http or https address.

    Raises:
        UsageError: it is no address, or holds a user name, a query or a fragment, which could be keys.
    """
    try:
        found = urlsplit(text.strip() if text.isprintable() and " " not in text.strip() else "")
        host = found.hostname
    except ValueError:
        found, host = urlsplit(""), None
    if found.scheme not in _PORTS or not host:
        shown = "malformed" if "@" in found.netloc else repr(text)
        raise UsageError(f"{what} is {shown}", remedy="give it as https://host/path")
    if "@" in found.netloc or found.query or found.fragment:
        raise UsageError(
            f"{what}, of {host}, holds a user name, a query or a fragment",
            remedy="give it as https://host/path; keys come from the environment",
        )
    try:
        port = found.port or _PORTS[found.scheme]
        host = host.encode("idna").decode()  # refuses parts that are empty or too long, as every network does
    except ValueError as error:
        raise UsageError(f"{what} is {text!r}: {error}", remedy="give it as https://host:port/path") from None
    return Address(found.scheme, host, port, quote(found.path.rstrip("/"), safe=_SAFE))


def ollama_address(text: str) -> Address:
    """Read what OLLAMA_HOST says: an address, a host, a port, or where a server listens."""
    written = text.strip().strip("\"'")
    if "://" not in written:
        written = f"http://{'127.0.0.1' if written.startswith(':') else ''}{written}"
        has_port = urlsplit(written).netloc.rpartition("]")[2].count(":") == 1
        written = written if has_port else f"{written.rstrip('/')}:{OLLAMA_PORT}"
    found = address_of(written, "OLLAMA_HOST")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(found.host, found.host)  # noqa: S104 - a server listens there
    return replace(found, host=host)


def _number(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


PROVIDERS: Final = ("openai", "anthropic", "ollama")
DEFAULT_PROVIDER: Final = "openai"
_OWN: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
"""The addresses of the providers that want a key."""
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

    The part before the first colon or slash is a provider only if it is one of ours: models of OpenAI and of servers
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


def access(
    provider: str,
    *,
    base_url: str = "",
    sends_key: bool = True,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
) -> Access:
    """Return how a provider is reached.

    Args:
        base_url: in place of the provider's own address; "" is the one that settings, environment or provider name.
        sends_key: False if the address comes from someone who may not have the key, such as a foreign file.
        environ: None is the process's own.

    Raises:
        ProviderError: it needs a key and there is none, or the key would go over an open network unencrypted.
        UsageError: an address or a key is malformed.
    """
    environ = os.environ if environ is None else environ
    if provider not in _OWN:
        written = base_url or (settings.ollama_url if settings else "")
        address = address_of(written) if written else ollama_address(environ.get("OLLAMA_HOST", "") or "127.0.0.1")
        return Access("ollama", address if address.path else replace(address, path="/v1"))
    # The address that is named nearest: by the call, by our settings, by the provider's variable.
    own, variable = _OWN[provider], f"{provider.upper()}_API_KEY"
    set_url = getattr(settings, f"{provider}_url") if settings else ""
    named_url = environ.get(f"{provider.upper()}_BASE_URL", "").strip()
    if base_url or set_url:
        address = address_of(base_url or set_url, "the address" if base_url else f"models.{provider}_url")
    else:
        address = address_of(named_url or own, f"{provider.upper()}_BASE_URL")
    key = _key(environ, variable, is_needed=str(address) == own) if sends_key else ""
    if key and address.scheme == "http" and not address.is_inside:
        raise ProviderError(f"the key in {variable} would go to {address} unencrypted", remedy="use an https address")
    if provider == "openai":
        return Access(provider, address, key, variable, {"Authorization": f"Bearer {key}"} if key else {})
    if not address.path.endswith("/v1"):
        # Their own clients take the address without the version.
        address = replace(address, path=f"{address.path}/v1")
    headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
    return Access(provider, address, key, variable, headers)


def without_keys(text: str, environ: Mapping[str, str]) -> str:
    """Return a text without the keys of an environment: what is not ours may have put them into an error."""
    for variable in KEYS:
        text = without_key(text, environ.get(variable, "").strip())
    return text


def _key(environ: Mapping[str, str], variable: str, *, is_needed: bool) -> str:
    key = environ.get(variable, "").strip()
    if not key and is_needed:
        raise ProviderError(f"{variable} is not set", remedy=f"set it to your key: export {variable}=…")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(f"{variable} holds characters that no key has", remedy="set it to the key alone")
    return key
