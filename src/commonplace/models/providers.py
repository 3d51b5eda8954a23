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
_PRIVATE_SUFFIXES: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Scheme, host, port and the path prefix of requests; `path` does not end in a slash."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine."""
        number = _number(self.host)
        return self.host == "localhost" if number is None else number.is_loopback

    @property
    def is_inside(self) -> bool:
        """Whether the host is this machine or in a private network, by its name or number."""
        number = _number(self.host)
        if number is None:
            return "." not in self.host or self.host.endswith(_PRIVATE_SUFFIXES)
        return number.is_private

    @property
    def authority(self) -> str:
        """Host and port in the form of a request; a default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def address_of(text: str, name: str = "the address") -> Endpoint:
    """Parse an http or https address.

    Raises:
        UsageError: it is no address, or has a user name, a query or a fragment, which could be keys.
    """
    try:
        parts = urlsplit(text.strip() if text.isprintable() and " " not in text.strip() else "")
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in _PORTS or not host:
        shown = "malformed" if "@" in parts.netloc else repr(text)
        raise UsageError(f"{name} is {shown}", remedy="give it as https://host/path")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{name}, of {host}, holds a user name, a query or a fragment",
            remedy="give it as https://host/path; keys come from the environment",
        )
    try:
        port = parts.port or _PORTS[parts.scheme]
        host = host.encode("idna").decode()  # refuses empty or too long labels
    except ValueError as error:
        raise UsageError(f"{name} is {text!r}: {error}", remedy="give it as https://host:port/path") from None
    return Endpoint(parts.scheme, host, port, quote(parts.path.rstrip("/"), safe=_SAFE))


def ollama_address(text: str) -> Endpoint:
    """Parse OLLAMA_HOST: an address, a host, a port, or the address a server listens on."""
    written = text.strip().strip("\"'")
    if "://" not in written:
        written = f"http://{'127.0.0.1' if written.startswith(':') else ''}{written}"
        has_port = urlsplit(written).netloc.rpartition("]")[2].count(":") == 1
        written = written if has_port else f"{written.rstrip('/')}:{OLLAMA_PORT}"
    address = address_of(written, "OLLAMA_HOST")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)  # noqa: S104 - a server listens there
    return replace(address, host=host)


def _number(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


PROVIDERS: Final = ("openai", "anthropic", "ollama")
DEFAULT_PROVIDER: Final = "openai"
_DEFAULT_URLS: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
"""Default addresses of the providers that require a key."""
KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Environment variables of the keys."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name, split into provider and model."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    """Parse a model's name: `provider:model` or `provider/model`; without a provider it is OpenAI's.

    The part before the first colon or slash is a provider only if it is in `PROVIDERS`: models of OpenAI and compatible
    servers have names such as `ft:gpt-4o:team` and `meta-llama/Llama-3`.

    Raises:
        UsageError: the name is empty or malformed.
    """
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise UsageError(f"the model's name is {text!r:.80}", remedy=f"name it as {DEFAULT_PROVIDER}:<model>")
    name = text.strip()
    for mark in (":", "/"):
        provider, _, model = name.partition(mark)
        if provider in PROVIDERS and provider != name:
            if not model:
                raise UsageError(f"{text!r} names no model", remedy=f"name it as {provider}:<model>")
            return ModelName(provider, model)
    return ModelName(DEFAULT_PROVIDER, name)


def access(
    provider: str,
    *,
    base_url: str = "",
    sends_key: bool = True,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
) -> Access:
    """Return the address and credentials of a provider.

    Args:
        base_url: overrides the provider's address; "" takes it from the settings, the environment or the default.
        sends_key: False if the address comes from an untrusted source, such as a foreign file.
        environ: None is the process's environment.

    Raises:
        ProviderError: the key is missing, or would go over a public network unencrypted.
        UsageError: an address or a key is malformed.
    """
    environ = os.environ if environ is None else environ
    if provider not in _DEFAULT_URLS:
        url = base_url or (settings.ollama_url if settings else "")
        address = address_of(url) if url else ollama_address(environ.get("OLLAMA_HOST", "") or "127.0.0.1")
        return Access("ollama", address if address.path else replace(address, path="/v1"))
    # Precedence: the call, the settings, the provider's variable, the default.
    default, variable = _DEFAULT_URLS[provider], f"{provider.upper()}_API_KEY"
    set_url = getattr(settings, f"{provider}_url") if settings else ""
    named_url = environ.get(f"{provider.upper()}_BASE_URL", "").strip()
    if base_url or set_url:
        address = address_of(base_url or set_url, "the address" if base_url else f"models.{provider}_url")
    else:
        address = address_of(named_url or default, f"{provider.upper()}_BASE_URL")
    key = _key(environ, variable, is_needed=str(address) == default) if sends_key else ""
    if key and address.scheme == "http" and not address.is_inside:
        raise ProviderError(f"the key in {variable} would go to {address} unencrypted", remedy="use an https address")
    if provider == "openai":
        return Access(provider, address, key, variable, {"Authorization": f"Bearer {key}"} if key else {})
    if not address.path.endswith("/v1"):
        # Anthropic's own clients take the address without the version.
        address = replace(address, path=f"{address.path}/v1")
    headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
    return Access(provider, address, key, variable, headers)


def without_keys(text: str, environ: Mapping[str, str]) -> str:
    """Return a text without the environment's keys: foreign code may have put them into an error."""
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
