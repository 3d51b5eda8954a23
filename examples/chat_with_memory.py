"""A chat that remembers: candidates from a store, the memory-retriever, and a chat task, chained by `depends_on`.

Run it anywhere: python chat_with_memory.py. Without a key our own re-ranker chooses the turns, and a scripted model
answers. With OPENAI_API_KEY set, or OPENAI_BASE_URL for a server that speaks like OpenAI's, a model does both.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import commonplace
from commonplace.models.llm import ScriptedGenerator

QUESTION = "Which database did we choose for billing?"
SAID = [
    ("2026-03-02T09:00:00+00:00", "user", "Let us choose a database for billing: I am for Postgres."),
    ("2026-03-02T09:01:00+00:00", "agent", "Postgres it is for billing; the team knows this database."),
    ("2026-03-03T10:00:00+00:00", "user", "My dog Rex ate the cable of the printer."),
    ("2026-03-04T11:00:00+00:00", "user", "The office moves to Lisbon in autumn."),
]

is_offline = not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

with TemporaryDirectory() as directory, commonplace.open(Path(directory) / "store") as book:
    book.remember_many([{"content": text, "at": at, "origin": origin} for at, origin, text in SAID])

    # 1. The store finds many candidates fast; what is not relevant may still be among them.
    hits = book.search(QUESTION, limit=20, kinds=["memory"], min_score=0).hits
    candidates = [
        {
            "role": "assistant" if hit.origin == "agent" else "user",
            "content": hit.text,
            "timestamp": datetime.fromtimestamp(hit.at or 0, UTC).isoformat(),
        }
        for hit in hits
    ]

    # 2. One call runs the chain: `recall` keeps the turns that matter, oldest first, and `chat` answers with them.
    chat = ScriptedGenerator(["You chose Postgres, since the team knows it."]) if is_offline else None
    result = commonplace.run_spec(
        Path(__file__).with_name("chat-with-memory.oas.yaml"),
        task="chat",
        input={"query": QUESTION, "candidates": candidates, "top_k": 2},
        generator={"chat": chat} if chat else None,
    )

if "code" in result:
    raise SystemExit(f"{result['code']}: {result['error']}")
print(f"{len(candidates)} candidates; the history that matters:")
for turn in result["input"]["history"]:
    print(f"    {turn['role']}: {turn['content']}")
print(f"Answer: {result['output']}")
if result.get("degraded"):
    print(f"({result['chain']['recall']['degraded_reason']})")
if chat:
    roles = [message.role for message in chat.calls[0].messages]
    print(f"The model was given: {', '.join(roles)}")
