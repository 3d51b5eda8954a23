"""What Graphiti needs to run without a network: FalkorDB, embedded, and a stand-in for its model and embedder.

Runs in an environment of its own with `graphiti-core[falkordb]` and `falkordblite`: prints one line of JSON with the
addresses of both, and ends when its input does. The model is rules: "Ann works at Acme." is an entity, a fact and an
entity; nothing else is a fact. A vector is the words of its text, hashed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import socket
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DIMENSIONS = 1024
_NAME = r"\w+(?:\.\w+)*(?: [A-Z]\w*)*"
_FACT = re.compile(rf"(?P<source>{_NAME}) (?P<verb>works at|lives in|depends on|uses|makes) (?P<target>{_NAME})")
_TEXT = re.compile(r"<(TEXT|CURRENT[ _]MESSAGE|JSON)>(.*?)</\1>", re.DOTALL)


def facts_of(prompt: str) -> list[re.Match[str]]:
    """Return the facts that the text of a prompt says."""
    found = _TEXT.search(prompt)
    return list(_FACT.finditer(found[2])) if found else []


def answer(kind: str, prompt: str) -> dict[str, Any]:
    """Return what the model says, as the schema of that name wants it."""
    facts = facts_of(prompt)
    names = dict.fromkeys(name for fact in facts for name in (fact["source"], fact["target"]))
    edges = [
        {
            "source_entity_name": each["source"],
            "target_entity_name": each["target"],
            "relation_type": each["verb"].upper().replace(" ", "_"),
            "fact": each[0],
            "valid_at": None,
            "invalid_at": None,
            "episode_indices": [0],
        }
        for each in facts
    ]
    answers: dict[str, dict[str, Any]] = {
        "ExtractedEntities": {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]},
        "NodeResolutions": {"entity_resolutions": []},
        "ExtractedEdges": {"edges": edges},
        "EdgeDuplicate": {"duplicate_facts": [], "contradicted_facts": []},
        "EdgeTimestamps": {"valid_at": None, "invalid_at": None},
        "SummarizedEntities": {"summaries": []},
    }
    return answers.get(kind, {})


def vector(text: str) -> list[float]:
    """Return a unit vector of the words of a text."""
    found = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        found[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(each * each for each in found)) or 1.0
    return [each / length for each in found]


class Model(BaseHTTPRequestHandler):
    """Answers as OpenAI's API does."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            items = [{"object": "embedding", "index": at, "embedding": vector(each)} for at, each in enumerate(texts)]
            self._send({"object": "list", "model": body["model"], "data": items, "usage": _USED})
            return
        kind = body.get("response_format", {}).get("json_schema", {}).get("name", "")
        prompt = "\n".join(str(each["content"]) for each in body["messages"])
        message = {"role": "assistant", "content": json.dumps(answer(kind, prompt))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "stub", "object": "chat.completion", "created": 0, "model": body["model"]}
        self._send({**head, "choices": [choice], "usage": _USED})

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _send(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_USED = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def main() -> None:
    """Serve until the input ends."""
    from redislite.falkordb_client import FalkorDB

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        database = FalkorDB(str(Path(directory) / "falkor.db"), {"port": str(port), "bind": "127.0.0.1"})
        addresses = {"falkordb": f"redis://127.0.0.1:{port}", "model": f"http://127.0.0.1:{model.server_port}/v1"}
        print(json.dumps(addresses), flush=True)
        sys.stdin.read()
        database.close()
        model.shutdown()


if __name__ == "__main__":
    main()
