"""Where a remote model is: addresses as people write them, checked; which proxy leads there. It opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from commonplace.errors import ProviderError, UsageError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

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
        """Whether it is this machine or one of a private network, as far as its name tells."""
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

    Args:
        what: what the message calls it.

    Raises:
        UsageError: it is none, or holds a user name, a query or a fragment, which could be keys.
    """
    found = _split(text)
    if found is None or found.scheme not in _PORTS or not found.hostname:
        shown = repr(text) if found is None or "@" not in found.netloc else "malformed"
        raise UsageError(f"{what} is {shown}", remedy="give it as https://host/path")
    if "@" in found.netloc or found.query or found.fragment:
        raise UsageError(
            f"{what}, of {found.hostname}, holds a user name, a query or a fragment",
            remedy="give it as https://host/path; keys come from the environment",
        )
    try:
        port = found.port or _PORTS[found.scheme]
        host = _encoded(found.hostname)
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
    return Address(found.scheme, host, found.port, found.path)


@dataclass(frozen=True, slots=True, repr=False)
class Proxy:
    """A proxy for HTTP. Its credentials, `user:password`, are in no message."""

    host: str
    port: int
    credentials: str = ""


def proxy_for(address: Address, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment names for an address; this machine itself is never behind one.

    Raises:
        ProviderError: the proxy is of another kind than http.
    """
    if address.is_loopback or not any(name.lower().endswith("_proxy") for name in environ):
        return None
    named = _proxies(environ)
    if _is_direct(address, named.get("no", "")):
        return None
    text = named.get(address.scheme) or named.get("all")
    if not text:
        return None
    found = _split(text if "://" in text else f"http://{text}")
    if found is None or found.scheme != "http" or not found.hostname:
        raise ProviderError(
            f"the proxy for {address.scheme} is not an http:// address",
            remedy="correct the variable, or name the host in no_proxy",
        )
    try:
        host, port = _encoded(found.hostname), found.port or _PORTS["http"]
    except ValueError:
        raise ProviderError(
            f"the proxy for {address.scheme} has a host or a port that there cannot be", remedy="correct the variable"
        ) from None
    user = unquote(found.username or "")
    credentials = f"{user}:{unquote(found.password or '')}" if user else ""
    return Proxy(host, port, credentials)


def _proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies by scheme, with `no` among them; a name in small letters wins, as everywhere."""
    found: dict[str, str] = {}
    for name in sorted(environ, key=str.islower):
        scheme = name.lower().removesuffix("_proxy")
        # In a CGI program HTTP_PROXY is a header of the request (CVE-2016-1000110).
        if scheme == name.lower() or (name == "HTTP_PROXY" and "REQUEST_METHOD" in environ):
            continue
        found[scheme] = environ[name]
    return {scheme: text for scheme, text in found.items() if text}


def _is_direct(address: Address, no_proxy: str) -> bool:
    """Tell whether `no_proxy` names an address: all with `*`, a host, a host with its port, or a domain."""
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    host = address.host.lower()
    names = {host, f"{host}:{address.port}"}
    return any(
        entry == "*" or entry in names or host.endswith("." + entry.lstrip("."))
        for entry in entries
        if entry.strip(".")
    )


def _number(host: str) -> IPv4Address | IPv6Address | None:
    """Return the number that a host is named by; None for a name."""
    import ipaddress

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _encoded(host: str) -> str:
    """Return a host's name in ASCII.

    Raises:
        ValueError: a part of it is empty or too long, so that asking for it would fail as no network does.
    """
    return host.encode("idna").decode()


def _split(text: str) -> SplitResult | None:
    if not text.isprintable() or " " in text.strip():
        return None
    try:
        found = urlsplit(text.strip())
        _ = found.hostname
    except ValueError:
        return None
    return found
