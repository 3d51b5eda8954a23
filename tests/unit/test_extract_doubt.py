"""What is asked, supposed, wished, denied, rumoured or planned is no fact, and neither is code or another language."""

from __future__ import annotations

import pytest
from tests.unit.extracting import claims

NO_FACTS = [
    "Does auth.ts depend on token.ts?",
    "Should we use GraphQL?",
    "What if we moved to Kubernetes?",
    "Mira lives in Oslo, right?",
    "If auth.ts depended on token.ts, we would refactor.",
    "If the cache fails, the API uses Postgres.",
    "The API uses Postgres if the cache fails.",
    "Unless Mira joins Acme, Tom leaves Acme.",
    "Should the cache fail, the API uses Postgres.",
    "Whenever the cache fails, the API uses Postgres.",
    "Suppose auth.ts depends on token.ts.",
    "The API may use Postgres.",
    "We might switch to Bun next month.",
    "We could move to Postgres.",
    "We should use GraphQL for the new API.",
    "I'd like to use Redis.",
    "I want Alice to join Acme.",
    "I wish we used Rust.",
    "I hope Tom joins Acme.",
    "Let's use Tailwind for styling.",
    "Use Redis for caching.",
    "Don't use Redis.",
    "Alice is going to join Acme.",
    "We plan to use Kafka.",
    "auth.ts does not depend on token.ts.",
    "Anna doesn't work at Siemens.",
    "The API gateway is not part of the monolith.",
    "We never used MongoDB.",
    "We haven't used MongoDB.",
    "Nobody uses MongoDB.",
    "No service depends on Kafka.",
    "None of the services use Kafka.",
    "Neither Alice nor Bob works for Acme.",
    "It is not true that Mira works for Acme.",
    "Mira denies that she works for Acme.",
    "Alice or Bob works for Acme.",
    "auth.ts depends on token.ts or session.ts.",
    "Maybe the cache causes the leak.",
    "The cache probably depends on Redis.",
    "I heard that Tom left Acme.",
    "Rumour has it that Acme left Berlin.",
    "Tom allegedly works for Acme.",
    "Alice thinks the bug is caused by Redis.",
    "It looks as if auth.ts depended on token.ts.",
    "For example, auth.ts depends on token.ts.",
    "Mira almost moved to Oslo.",
    "We nearly chose MySQL for billing.",
    "We assumed auth.ts depends on token.ts.",
    "Tom was wrong that auth.ts depends on token.ts.",
    "Please make sure that the worker uses Redis.",
    "Ensure that the worker uses Redis.",
    "Carol's brother lives in Oslo.",
    "His wife works for Acme.",
    "A customer lives in Oslo.",
    "Mira works for a bank.",
    "Mira's company is based in Oslo.",
    "Sounds like a great plan.",
    "My laptop is like a lifeline.",
    "Oh, Italy!",
    "We're still deciding on the destination.",
    "A custom event called ready is emitted.",
    "We found Acme on a map.",
    "The deadline moved from Friday to Monday.",
    "The v2 release was caused by nothing.",
    "This depends on Redis.",
    "See the design of `auth.ts`.",
    "- [ ] move billing to Stripe",
    "depends on",
    "of of of uses",
    "",
    "?",
]

OTHER_LANGUAGES = [
    "Wir nutzen Postgres für die Abrechnung.",
    "Nous avons choisi Postgres pour la facturation.",
    "José García trabaja en Madrid para Telefónica.",
    "山田太郎は東京に住んでいます。",
    "Мария живёт в Москве и работает в Яндексе.",
]


@pytest.mark.parametrize("text", [*NO_FACTS, *OTHER_LANGUAGES])
def test_nothing_is_claimed(text: str) -> None:
    assert claims(text) == []


def test_code_is_no_prose() -> None:
    fenced = "```python\nimport redis  # billing depends on stripe\n```"
    text = f"- `api` depends on `db`\n\n{fenced}\n\n| auth.ts | depends on | b.ts |\n"
    assert claims(text) == ["api DEPENDS_ON db"]


def test_done_box_is_a_fact() -> None:
    assert claims("- [x] We moved search to Elasticsearch in May") == ["search USES Elasticsearch since 2025-05-01"]


def test_doubt_ends_with_its_part_of_the_sentence() -> None:
    assert claims("I wish we used Rust, but the API uses Go.") == ["API USES Go"]
