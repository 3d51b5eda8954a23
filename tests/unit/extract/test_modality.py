"""What somebody else has said is recorded as hearsay: no surer than `HEARSAY`, so that a graph ends nothing by it."""

from __future__ import annotations

import pytest
from tests.unit.extract.extraction import claims, extracted, names

from commonplace.extract.modality import HEARSAY, is_inside, quotations
from commonplace.graph.extraction import understand
from commonplace.graph.facts import MIN_CONFIDENCE
from commonplace.graph.kinds import Kinds

REPORTED = [
    "The novel says Mira lives in Rome.",
    "In the novel, Mira lives in Rome.",
    "In the old film Mira lives in Rome.",
    "> Mira lives in Rome.",
    ">Mira lives in Rome.",
    "> > Mira lives in Rome.",
    "On Monday, Bob wrote:\n> Mira lives in Rome.",
    "See below.\n\n-----Original Message-----\nMira lives in Rome.",
    "Begin forwarded message:\n\nMira lives in Rome.",
    "According to Bob, Mira lives in Rome.",
    "Mira lives in Rome, according to Bob.",
    "Bob said that Mira lives in Rome.",
    "Bob says Mira lives in Rome.",
    "Bob told me Mira lives in Rome.",
    "Bob wrote that Mira lives in Rome.",
    "Bob insists Mira lives in Rome.",
    "It was announced that Mira lives in Rome.",
    "Mira lives in Rome, Bob said.",
    "Mira lives in Rome, said Bob.",
    "Mira lives in Rome, at least so Bob says.",
    "Mira lives in Rome – that is what Bob says.",
    '"Mira lives in Rome," said Bob.',
    '"Mira works. Mira lives in Rome," said Bob.',
    "“Mira lives in Rome.”",
    "«Mira lives in Rome.»",
    'Bob said: "Mira lives in Rome."',
    '"Mira lives in Rome. She',
]

TOLD = [
    "Mira lives in Rome.",
    "I told you that Mira lives in Rome.",
    "As I said, Mira lives in Rome.",
    "I have already said that Mira lives in Rome.",
    "Mira, who lives in Rome, said so.",
    "Mira lives in Rome, and Tom said hello.",
    "Mira lives in Rome and said hello.",
    "Mira wrote auth.ts and lives in Rome.",
    "Mira reports to Tom and lives in Rome.",
    "In the United States, Mira lives in Rome.",
    'Mira, called "the Boss", lives in Rome.',
    'The 5" pipe leaks. Mira lives in Rome.',
    'Tom: "Mira lives in Rome."',
    "a > b. Mira lives in Rome.",
]


def sureness(text: str) -> list[float]:
    found = extracted(text)
    return [claim.confidence for claim in found.claims if found.entities[claim.target].name == "Rome"]


@pytest.mark.parametrize("text", REPORTED)
def test_what_others_have_said_is_hearsay(text: str) -> None:
    assert sureness(text) == [HEARSAY]


@pytest.mark.parametrize("text", TOLD)
def test_what_the_text_itself_says_is_none(text: str) -> None:
    [sure] = sureness(text)
    assert sure > MIN_CONFIDENCE


@pytest.mark.parametrize("text", ['"I moved to Rome," said Bob.', 'Bob said: "I moved to Rome."', "> We use Redis."])
def test_who_speaks_in_a_quotation_is_not_who_speaks_in_the_text(text: str) -> None:
    assert extracted(text).claims == ()


def test_a_quotation_behind_a_label_is_its_speakers_own() -> None:
    found = extracted('Mira: "I moved to Rome. I love it."')
    [claim] = found.claims
    assert (found.entities[claim.source].name, found.entities[claim.target].name) == ("Mira", "Rome")
    assert claim.confidence > MIN_CONFIDENCE


def test_hearsay_is_less_sure_than_what_ends_a_fact() -> None:
    assert HEARSAY < MIN_CONFIDENCE


@pytest.mark.parametrize(
    ("text", "fact", "confidence"),
    [
        ("Tom says Raj is my manager now.", "the user RELATED_TO Raj", HEARSAY),
        ("Tom said that Raj is my manager now.", "the user RELATED_TO Raj", HEARSAY),
        ("Tom told me Mira is my manager now.", "the user RELATED_TO Mira", HEARSAY),
        ("Tom says Omar leads billing.", "billing RELATED_TO Omar", HEARSAY),
        ("My sister says the standup is at 10:15 now.", "standup RELATED_TO 10:15", HEARSAY),
        ("I said my manager is Raj now.", "the user RELATED_TO Raj", 0.8),
    ],
)
def test_who_says_it_is_no_part_of_a_name(text: str, fact: str, confidence: float) -> None:
    assert claims(text) == [fact]
    assert [claim.confidence for claim in extracted(text).claims] == [confidence]
    assert not any(" sa" in name or " told" in name for name in names(text))


def test_quoted_lines_of_a_conversation_are_hearsay() -> None:
    said = understand("Tom: look\n> Mira: I moved to Rome.\nTom: Mira works for Acme.", "message", 0.0, Kinds())
    assert [claim.confidence > MIN_CONFIDENCE for claim in said.claims] == [False, True]


def test_where_a_text_quotes() -> None:
    text = 'a "b" c\n> "d"\n“e'
    spans = quotations(text)
    assert [text[start:end] for start, end in spans] == ['"b"', '> "d"', "“e"]
    assert [is_inside(spans, text.index(char)) for char in "abcde"] == [False, True, False, True, True]
    assert quotations("plain") == []


# What is asked, supposed, wished, denied, rumoured or planned is no fact, and neither is code or another language.

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
    "Nobody is sure that Mira works for Acme.",
    "No one is certain that Mira works for Acme.",
    "No service depends on Kafka.",
    "None of the services use Kafka.",
    "Neither Alice nor Bob works for Acme.",
    "It is not true that Mira works for Acme.",
    "It is not really true that Mira works for Acme.",
    "I'm not entirely sure Mira works for Acme.",
    "It is not at all certain that Mira works for Acme.",
    "Mira is no engineer at Acme.",
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


@pytest.mark.parametrize(
    "text",
    [
        "Mira's move to Munich was cancelled.",
        "Mira's move to Munich fell through.",
        "Mira's move to Munich has not happened yet.",
        "Mira called off the move to Munich.",
        "Mira did not move to Munich after all.",
        "Mira is not moving to Munich after all.",
        "Mira won't move to Munich.",
        "Mira did not join Acme after all.",
        "The migration to Kubernetes was cancelled.",
    ],
)
def test_what_is_called_off_is_no_fact(text: str) -> None:
    assert claims(text) == []


# Who leaves a place may only travel, and who has come back has not moved.

LEAVING = [
    "for a competitor",
    "for personal reasons",
    "for health reasons",
    "for a startup",
    "for her own company",
    "at her own request",
    "at short notice",
    "at age 30",
]
NO_MOVES = [
    "Mira left Berlin.",
    "Mira left Berlin for Munich.",
    "Mira left Berlin on Monday.",
    "Mira is leaving on Monday.",
    "Mira left Acme at five.",
    "Mira left Acme at half past five.",
    "Mira left Acme by train.",
    "Mira left Acme on a business trip.",
    "Mira left Acme for the airport.",
    "Mira left Acme for the weekend.",
    "Mira left Acme for a conference.",
    "Mira left Acme for two weeks.",
    "Mira left Berlin for a conference in May.",
    "Mira left Acme for the day.",
    "Mira left Acme for lunch.",
    "Mira left Acme for a quick coffee.",
    "Mira left Acme at noon.",
    "Mira left Acme last night.",
    "Mira moved to Lagos and back.",
    "Mira moved to Lagos and back again.",
    "Mira moved to Lagos, then back.",
    "Mira moved to Lagos and came back.",
    "Mira moved to Lagos in 2019 and returned in 2020.",
    "Mira moved to Lagos, then later returned to Berlin.",
    "We switched from MySQL to Postgres and back to MySQL.",
    "Mira moved to Lagos for the summer.",
    "Mira moved to Lagos for six months.",
    "Mira has moved to Lagos for six months.",
    "Mira temporarily moved to Lagos.",
    "Mira moved temporarily to Lagos.",
    "Mira settled in Lagos for the night.",
    "Mira relocated to Lagos for the winter.",
    "We switched from Slack to Teams for one call.",
    "We switched from Slack to Teams for this meeting.",
]

MOVES = [
    *((f"Mira left Acme {words}.", ["Mira WORKS_FOR Acme ended"]) for words in LEAVING),
    ("Mira left Acme about two years ago.", ["Mira WORKS_FOR Acme until 2024-03-10 ended"]),
    ("I left Acme for a better job.", ["the user WORKS_FOR Acme ended"]),
    ("Mira left Acme around 2024.", ["Mira WORKS_FOR Acme ended"]),
    ("Mira left Berlin for good.", ["Mira LIVES_IN Berlin ended"]),
    ("Mira left Berlin in 2019.", ["Mira LIVES_IN Berlin until 2019-01-01 ended"]),
    ("Mira left Berlin in May 2025.", ["Mira LIVES_IN Berlin until 2025-05-01 ended"]),
    ("Mira is leaving Berlin in June.", ["Mira LIVES_IN Berlin until 2026-06-01 ended"]),
    ("I work at Acme and live in Oslo.", ["the user WORKS_FOR Acme", "the user LIVES_IN Oslo"]),
    ("I live in Oslo and work at Acme.", ["the user LIVES_IN Oslo", "the user WORKS_FOR Acme"]),
    ("Mira left Acme on Monday.", ["Mira WORKS_FOR Acme until 2026-03-09 ended"]),
    ("Mira is leaving Acme on Monday.", ["Mira WORKS_FOR Acme until 2026-03-16 ended"]),
    ("Mira moved back to Berlin.", ["Mira LIVES_IN Berlin"]),
    ("Mira moved to Lagos, back in May 2025.", ["Mira LIVES_IN Lagos since 2025-05-01"]),
    ("Mira moved to Lagos for this job.", ["Mira LIVES_IN Lagos"]),
    ("Mira moved to Lagos for one reason: love.", ["Mira LIVES_IN Lagos"]),
    ("Mira moved to Lagos to work for one of the largest banks.", ["Mira LIVES_IN Lagos"]),
    ("We migrated from MySQL to Postgres for this project.", ["we USES Postgres", "we USES MySQL ended"]),
    ("We switched from Slack to Teams for one reason.", ["we USES Teams", "we USES Slack ended"]),
    (
        "Mira moved to Lagos in 2019 and moved back to Berlin in 2021.",
        ["Mira LIVES_IN Berlin since 2021-01-01"],
    ),
    ("Mira moved to Lagos this morning.", ["Mira LIVES_IN Lagos since 2026-03-10"]),
    ("Mira, who lives in Berlin, is leaving on Monday.", ["Mira LIVES_IN Berlin"]),
    ("Mira moved to Lagos.", ["Mira LIVES_IN Lagos"]),
    ("Mira moved to Lagos for this reason.", ["Mira LIVES_IN Lagos"]),
]


@pytest.mark.parametrize("text", NO_MOVES)
def test_a_journey_is_no_move(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(("text", "facts"), MOVES)
def test_a_move_is_one(text: str, facts: list[str]) -> None:
    assert claims(text) == facts
    assert all(claim.confidence > HEARSAY for claim in extracted(text).claims)
