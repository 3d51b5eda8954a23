"""A stub of the OpenAI, Ollama and Anthropic APIs on 127.0.0.1, with scripted replies, good and bad.

    with ModelServer([good('{"score": 7}'), busy(), good("…")]) as server:
        model = open_generator("openai:stub", base_url=server.openai_url, environ={})

Replies are used in order; after the last one, or without any, `server.rule` answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from tests.stubs.serving import Serving

if TYPE_CHECKING:
    import pytest

DIMENSIONS = 16


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    document: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All that the model is told, as one text."""
        messages = self.document.get("messages", [])
        return "\n".join([str(self.document.get("system", "")), *(str(each["content"]) for each in messages)])


@dataclass(frozen=True)
class Reply:
    """What to answer: a text in the provider's form, or a document, or bytes; `manner` is how it goes out."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    document: Any = None
    body: bytes | None = None
    manner: str = "whole"
    is_cut: bool = False


def good(text: str) -> Reply:
    return Reply(text)


def fenced(text: str) -> Reply:
    return Reply(f"```json\n{text}\n```")


def prose(text: str) -> Reply:
    return Reply(f"Certainly! Here is [what] you asked for: {text} I hope it helps.")


def empty() -> Reply:
    return Reply("")


def truncated(text: str) -> Reply:
    """The first half of a text, with the reason that the provider gives."""
    return Reply(text[: len(text) // 2], is_cut=True)


def refusal(status: int, message: str = "no", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers=named, document={"error": {"message": message, "type": "stub"}})


def busy(retry_after: str = "") -> Reply:
    return refusal(429, "slow down", **({"retry_after": retry_after} if retry_after else {}))


def broken() -> Reply:
    return refusal(500, "out of order")


def bad_json() -> Reply:
    return Reply(body=b'{"choices": [')


def hang() -> Reply:
    """Nothing comes, and the connection stays open."""
    return Reply(manner="hang")


def drip() -> Reply:
    """A byte comes now and then, for ever."""
    return Reply(manner="drip")


def drip_headers() -> Reply:
    """A byte of a header comes now and then, for ever."""
    return Reply(manner="drip headers")


def dropped() -> Reply:
    """The connection closes before any answer."""
    return Reply(manner="dropped")


def dropped_half_way(text: str = "half") -> Reply:
    """The connection closes in the middle of the body."""
    return Reply(text, manner="half")


def huge() -> Reply:
    """A body without end, in chunks."""
    return Reply(manner="huge")


Rule = Callable[[Asked], Reply]


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a vector that texts with the same words have, not of unit length."""
    found = [0.0] * dimensions
    for word in text.lower().split():
        found[hashlib.sha256(word.encode()).digest()[0] % dimensions] += 3.0
    return found


def embeddings(asked: Asked, dimensions: int = DIMENSIONS) -> Reply:
    """Answer a request for embeddings, in an order that is not the one of the texts."""
    texts = asked.document["input"]
    data = [
        {"object": "embedding", "index": place, "embedding": vector(text, dimensions)}
        for place, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
    return Reply(document={"object": "list", "data": data[::-1], "model": "stub", "usage": usage})


def everything(asked: Asked) -> Reply:
    """Embed what is to be embedded, and say yes to the rest."""
    return embeddings(asked) if asked.path.endswith("/embeddings") else good("yes")


class ModelServer(Serving):
    """The stub. It listens from `with` on until its end."""

    def __init__(self, replies: Iterable[Reply] = (), rule: Rule = everything) -> None:
        super().__init__(_Handler)
        self.asked: list[Asked] = []
        self.rule = rule
        self._replies = list(replies)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.address

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def environ(self) -> dict[str, str]:
        """An environment in which every provider is this server."""
        return {
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": "sk-stub-openai",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-ant-stub",
            "OLLAMA_HOST": self.url,
        }

    def name_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the process's own environment name it, until the end of the test."""
        for name, value in self.environ.items():
            monkeypatch.setenv(name, value)

    def answer(self, asked: Asked) -> Reply:
        """Return the next reply, and note what was asked."""
        with self._lock:
            self.asked.append(asked)
            reply = self._replies.pop(0) if self._replies else None
        return reply or self.rule(asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: ModelServer

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(body))
        reply = self.stub.answer(asked)
        with contextlib.suppress(ConnectionError):
            self._send(reply, asked)

    def _send(self, reply: Reply, asked: Asked) -> None:
        if reply.manner == "hang":
            self.stub.closing.wait()
        elif reply.manner in ("drip", "drip headers"):
            self._drip(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if reply.manner == "drip" else b"X-Slow: "))
        elif reply.manner == "huge":
            self._flood()
        elif reply.manner != "dropped":
            self._whole(reply, _body(reply, asked))

    def _whole(self, reply: Reply, body: bytes) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.manner == "half" else body)

    def _drip(self, beginning: bytes) -> None:
        self.wfile.write(beginning)
        while not self.stub.closing.wait(0.005):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _flood(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not self.stub.closing.is_set():
            self.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def _body(reply: Reply, asked: Asked) -> bytes:
    if reply.body is not None:
        return reply.body
    if reply.document is not None:
        return json.dumps(reply.document).encode()
    return json.dumps(_anthropic(reply, asked) if asked.path.endswith("/messages") else _openai(reply)).encode()


def _openai(reply: Reply) -> dict[str, Any]:
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "model": "stub-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text, "refusal": None},
                "finish_reason": "length" if reply.is_cut else "stop",
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _anthropic(reply: Reply, asked: Asked) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    if "tools" in asked.document and not reply.is_cut:
        with contextlib.suppress(ValueError):
            content = [{"type": "tool_use", "id": "toolu_stub", "name": "answer", "input": json.loads(reply.text)}]
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": "stub-model",
        "content": content,
        "stop_reason": "max_tokens" if reply.is_cut else "end_turn",
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
