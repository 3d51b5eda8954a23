"""Facts that sentences of everyday work state, exactly: who, what, since when."""

from __future__ import annotations

import pytest
from tests.unit.extract.extraction import claims, extracted, names

from commonplace.extract.verbs import FORMS
from commonplace.extract.words import WORDS

DEPENDENCIES = [
    ("The auth.ts file depends on token.ts for JWT refresh handling", ["auth.ts DEPENDS_ON token.ts"]),
    ("The payment module depends heavily on the ledger package.", ["payment module DEPENDS_ON ledger package"]),
    ("src/api/routes.py imports src/db/models.py.", ["src/api/routes.py DEPENDS_ON src/db/models.py"]),
    ("Both services rely on Kafka.", ["services DEPENDS_ON Kafka"]),
    (
        "auth.ts and billing.ts depend on config.ts, token.ts and session.ts.",
        [
            f"{left} DEPENDS_ON {right}"
            for left in ("auth.ts", "billing.ts")
            for right in ("config.ts", "token.ts", "session.ts")
        ],
    ),
    (
        "The frontend, the backend and the worker all depend on the shared library.",
        [f"{name} DEPENDS_ON shared library" for name in ("frontend", "backend", "worker")],
    ),
    ("auth.ts, which handles login, depends on token.ts.", ["auth.ts DEPENDS_ON token.ts"]),
    ("The build is blocked by the failing lint step.", ["build DEPENDS_ON failing lint step"]),
    ("**auth.ts** depends on **token.ts**.", ["auth.ts DEPENDS_ON token.ts"]),
    ('"Project Falcon" depends on the search index.', ["Project Falcon DEPENDS_ON search index"]),
    ("The retry queue is part of the payments service.", ["retry queue PART_OF payments service"]),
    ("utils/retry.py contains the `retry` decorator.", ["retry PART_OF utils/retry.py"]),
    ("The `retry` decorator is defined in utils/retry.py.", ["retry PART_OF utils/retry.py"]),
    ("TokenStore implements the Store protocol.", ["TokenStore IMPLEMENTS Store"]),
    ("Vitest is similar to Jest.", ["Vitest SIMILAR_TO Jest"]),
    ("auth.ts conflicts with session.ts", ["auth.ts CONTRADICTS session.ts"]),
    ("The note from Monday contradicts the README.", ["note CONTRADICTS README"]),
]

USES = [
    ("`parse_config()` is used by `load_settings()`.", ["load_settings() USES parse_config()"]),
    ("The `UserService` calls `AuthClient.refresh()` on every request.", ["UserService USES AuthClient.refresh()"]),
    (
        "Postgres and Redis are used by the billing service.",
        ["billing service USES Postgres", "billing service USES Redis"],
    ),
    ("Grafana, which is hosted on AWS, uses Prometheus.", ["Grafana USES AWS", "Grafana USES Prometheus"]),
    ("The CLI is written in Go and uses cobra.", ["CLI USES Go", "CLI USES cobra"]),
    ("Since 2024, the infra team uses Terraform.", ["infra team USES Terraform since 2024-01-01"]),
    ("The worker uses Redis, not Memcached.", ["worker USES Redis"]),
    ("We use Postgres 15 in production.", ["we USES Postgres"]),
    ("The payments API is implemented in Rust by the platform team.", ["payments API USES Rust"]),
    ("CI runs on GitHub Actions.", ["CI USES GitHub Actions"]),
    ("The nightly job writes to S3 and reads from Postgres.", ["nightly job USES S3", "nightly job USES Postgres"]),
]

CHANGES = [
    ("The billing service no longer uses MySQL.", ["billing service USES MySQL ended"]),
    ("The worker doesn't depend on Redis anymore.", ["worker DEPENDS_ON Redis ended"]),
    ("The cache is no longer part of the monolith.", ["cache PART_OF monolith ended"]),
    (
        "We switched from Jest to Vitest last month.",
        ["we USES Vitest since 2026-02-01", "we USES Jest until 2026-02-01 ended"],
    ),
    (
        "Billing migrated from Stripe to Adyen in Q2 2025.",
        ["Billing USES Adyen since 2025-04-01", "Billing USES Stripe until 2025-04-01 ended"],
    ),
    (
        "We moved the API from Express to FastAPI last week.",
        ["API USES FastAPI since 2026-03-02", "API USES Express until 2026-03-02 ended"],
    ),
    ("We replaced Webpack with Vite.", ["we USES Vite", "we USES Webpack ended"]),
    (
        "MySQL was replaced by Postgres in the billing service in January.",
        ["billing service USES Postgres since 2026-01-01", "billing service USES MySQL until 2026-01-01 ended"],
    ),
    (
        "The team stopped using Jira and started using Linear in June.",
        ["team USES Jira ended", "team USES Linear since 2025-06-01"],
    ),
    ("Until 2023 we used Jenkins.", ["we USES Jenkins until 2023-01-01"]),
    ("Mira lived in Oslo until 2018.", ["Mira LIVES_IN Oslo until 2018-01-01"]),
    ("Mira has lived in Oslo since 2018.", ["Mira LIVES_IN Oslo since 2018-01-01"]),
    ("Mira lived in Oslo till May 2018.", ["Mira LIVES_IN Oslo until 2018-05-01"]),
    ("Mira lived in Oslo before 2018.", ["Mira LIVES_IN Oslo until 2018-01-01"]),
    ("We will move to Postgres in June.", ["we USES Postgres since 2026-06-01"]),
]

DECISIONS = [
    ("We chose Postgres over MySQL for billing because of JSONB.", ["billing DECIDED Postgres"]),
    ("Postgres was chosen over MySQL for billing.", ["billing DECIDED Postgres"]),
    ("For billing we chose Stripe.", ["billing DECIDED Stripe"]),
    ("We decided to use Kafka for events.", ["events DECIDED Kafka"]),
    ("Decision: use Postgres for billing", ["billing DECIDED Postgres"]),
    ("- Decision: we chose FastAPI over Flask", ["we DECIDED FastAPI"]),
    ("We're going to use pytest instead of unittest.", ["we DECIDED pytest"]),
    ("Postgres was chosen by the platform team.", ["platform team DECIDED Postgres"]),
    ("The team decided not to support IE11.", ["team DECIDED not to support IE11"]),
    ("We decided to ship on Friday because of the deadline.", ["we DECIDED ship on Friday since 2026-03-06"]),
    ("It was decided that releases happen on Tuesdays.", ["we DECIDED releases happen on Tuesdays"]),
    ("We agreed to freeze the API because clients complained.", ["we DECIDED freeze the API"]),
]

PREFERENCES = [
    ("I prefer tabs over spaces.", ["the user PREFERS tabs"]),
    ("I prefer using vim in the terminal.", ["the user PREFERS vim"]),
    ("Mira prefers dark mode and uses vim.", ["Mira PREFERS dark mode", "Mira USES vim"]),
    ("Tom likes hiking, but he doesn't like running.", ["Tom PREFERS hiking"]),
    (
        "The user prefers concise answers and British spelling.",
        ["the user PREFERS concise answers", "the user PREFERS British spelling"],
    ),
    ("User prefers dark mode.", ["the user PREFERS dark mode"]),
    ("Alice said she prefers tea to coffee.", ["Alice PREFERS tea"]),
    ("My favorite editor is Neovim.", ["the user PREFERS Neovim"]),
    ("Mira's favourite colour is green.", ["Mira PREFERS green"]),
]

CAUSES = [
    ("The outage was caused by a full disk.", ["outage CAUSED_BY full disk"]),
    ("A missing index caused the timeout in billing.", ["timeout CAUSED_BY missing index"]),
    ("The flaky test is caused by a race condition in `scheduler.py`.", ["flaky test CAUSED_BY race condition"]),
    ("The v2 migration happened after the outage.", ["v2 migration OCCURRED_AFTER outage"]),
    ("The deploy happened before the outage.", ["outage OCCURRED_AFTER deploy"]),
    ("The outage happened after the deploy on 3 March 2026.", ["outage OCCURRED_AFTER deploy since 2026-03-03"]),
]

PEOPLE = [
    (
        "Mira Okafor moved from Berlin to Oslo in May 2024.",
        ["Mira Okafor LIVES_IN Oslo since 2024-05-01", "Mira Okafor LIVES_IN Berlin until 2024-05-01 ended"],
    ),
    ("Søren moved away from Copenhagen in May.", ["Søren LIVES_IN Copenhagen until 2025-05-01 ended"]),
    ("I moved to Lisbon last year and I love it.", ["the user LIVES_IN Lisbon since 2025-01-01"]),
    ("I'm moving to Tokyo in September.", ["the user LIVES_IN Tokyo since 2026-09-01"]),
    ("I used to live in Rome, now I live in Milan.", ["the user LIVES_IN Rome ended", "the user LIVES_IN Milan"]),
    ("Mira has been living in Oslo since 2020.", ["Mira LIVES_IN Oslo since 2020-01-01"]),
    ("Łukasz Żółkowski lives in Kraków.", ["Łukasz Żółkowski LIVES_IN Kraków"]),
    ("Paul is from Ghana.", ["Paul LIVES_IN Ghana once"]),
    ("Paul was born in Accra in 1980.", ["Paul LIVES_IN Accra since 1980-01-01 once"]),
    ("Paul lived in Accra.", ["Paul LIVES_IN Accra once"]),
    ("Paul lived in Accra last year.", ["Paul LIVES_IN Accra since 2025-01-01 until 2026-01-01 once"]),
    ("Paul has lived in Accra since 2020.", ["Paul LIVES_IN Accra since 2020-01-01"]),
    ("Paul has lived in Accra for ten years.", ["Paul LIVES_IN Accra"]),
    ("Paul has lived in Accra and Oslo.", ["Paul LIVES_IN Accra once", "Paul LIVES_IN Oslo once"]),
    ("Paul has worked for Globex.", ["Paul WORKS_FOR Globex once"]),
    ("Paul has been living in Accra.", ["Paul LIVES_IN Accra"]),
    ("Paul has been living in Accra for two weeks.", ["Paul LIVES_IN Accra"]),
    ("Paul works for Holiday Inn.", ["Paul WORKS_FOR Holiday Inn"]),
    ("We chose Zoom for the trip.", ["trip DECIDED Zoom"]),
    ("Paul was the head of design at Globex.", ["Paul WORKS_FOR Globex once"]),
    ("Paul is a former employee of Globex.", ["Paul WORKS_FOR Globex ended"]),
    ("Acme, based in Berlin, hires Paul.", ["Acme LOCATED_IN Berlin", "Paul WORKS_FOR Acme"]),
    (
        "Tom left Initech in 2023 and joined Globex.",
        ["Tom WORKS_FOR Initech until 2023-01-01 ended", "Tom WORKS_FOR Globex"],
    ),
    ("Dr. Chen was hired by Anthropic in January 2025.", ["Chen WORKS_FOR Anthropic since 2025-01-01"]),
    ("Alice will join Acme in September.", ["Alice WORKS_FOR Acme since 2026-09-01"]),
    ("Alice and Bob work for Acme Corp.", ["Alice WORKS_FOR Acme Corp.", "Bob WORKS_FOR Acme Corp."]),
    ("Anna no longer works at Siemens.", ["Anna WORKS_FOR Siemens ended"]),
    ("Anna doesn't work at Siemens any longer.", ["Anna WORKS_FOR Siemens ended"]),
    (
        "Anna doesn't work at Siemens any longer and moved to Berlin.",
        ["Anna WORKS_FOR Siemens ended", "Anna LIVES_IN Berlin"],
    ),
    ("Anna worked at Bosch from 2015 to 2019.", ["Anna WORKS_FOR Bosch since 2015-01-01 until 2020-01-01"]),
    ("Maria is the head of design at Globex.", ["Maria WORKS_FOR Globex"]),
    ("Mira, the CTO of Acme, lives in Oslo.", ["Mira WORKS_FOR Acme", "Mira LIVES_IN Oslo"]),
    ("Globex's CTO, Maria Lopez, lives in Madrid.", ["Maria Lopez WORKS_FOR Globex", "Maria Lopez LIVES_IN Madrid"]),
    (
        "Former Acme engineer Tom Baker joined Initech.",
        ["Tom Baker WORKS_FOR Acme ended", "Tom Baker WORKS_FOR Initech"],
    ),
    ("Joe manages the infra team and reports to Anna.", ["Joe RELATED_TO infra team", "Joe RELATED_TO Anna"]),
    ("Berlin-based Acme hired Mira.", ["Acme LOCATED_IN Berlin", "Mira WORKS_FOR Acme"]),
    ("Acme is headquartered in Zürich, Switzerland.", ["Zürich LOCATED_IN Switzerland", "Acme LOCATED_IN Zürich"]),
    ("Acme relocated to Vienna in 2022.", ["Acme LOCATED_IN Vienna since 2022-01-01"]),
    ("Acme, a Berlin-based company, hired Tom.", ["Acme LOCATED_IN Berlin"]),
    ("Globex, a Munich startup, hired Tom.", ["Globex LOCATED_IN Munich"]),
    ("Anna, CEO of Zblork, spoke.", ["Anna WORKS_FOR Zblork"]),
    ("Zblork spokesman Tom Baker lives in Oslo.", ["Tom Baker WORKS_FOR Zblork", "Tom Baker LIVES_IN Oslo"]),
    ("Ngozi works at Zblork.", ["Ngozi WORKS_FOR Zblork"]),
    ("The frontend team owns src/web.", ["frontend team RELATED_TO src/web"]),
    ("Pavel Novak works with Ines Duarte.", ["Pavel Novak RELATED_TO Ines Duarte"]),
    ("The meeting took place in Berlin.", ["meeting LOCATED_IN Berlin"]),
]

ALL = DEPENDENCIES + USES + CHANGES + DECISIONS + PREFERENCES + CAUSES + PEOPLE


@pytest.mark.parametrize(("text", "expected"), ALL, ids=[text for text, _ in ALL])
def test_sentence_states_exactly_these_facts(text: str, expected: list[str]) -> None:
    assert claims(text) == expected


def test_an_unknown_name_that_a_person_moved_to_is_a_place() -> None:
    """The graph ends the old home only for a place: of anything else the move is a mere hint."""
    assert "Antwerpen place" in names("Agnes Abernathy moved to Antwerpen in February 2026.")


def test_pronoun_means_the_subject_of_the_sentence_before() -> None:
    text = "The billing service is slow. It uses MySQL."
    assert claims(text) == ["billing service USES MySQL"]
    assert extracted(text).claims[0].fact == "billing service uses MySQL."


def test_pronoun_means_the_subject_of_the_same_sentence() -> None:
    found = extracted("auth.ts is slow because it depends on MySQL.")
    assert found.claims[0].fact == "auth.ts is slow because auth.ts depends on MySQL."


def test_she_is_the_person_named_last() -> None:
    assert claims("Anna works at Siemens. She joined Siemens in 2019.") == [
        "Anna WORKS_FOR Siemens",
        "Anna WORKS_FOR Siemens since 2019-01-01",
    ]


def test_they_means_nobody_certain_where_two_were_named() -> None:
    """Which of them, or both, the text does not say in a way that a grammar this small could tell."""
    assert claims("Tom and Anna are here. They work for Acme.") == []


def test_pronoun_that_means_nobody_known_states_nothing() -> None:
    assert claims("He lives in Oslo. This depends on Redis.") == []


def test_company_means_the_one_named_before() -> None:
    assert claims("Acme's CEO Tom Baker said the company moved to Berlin.") == [
        "Tom Baker WORKS_FOR Acme",
        "Acme LOCATED_IN Berlin",
    ]


def test_auth_module_is_the_file_of_that_name() -> None:
    found = extracted("auth.ts depends on token.ts. The auth module also uses Redis.")
    assert [entity.name for entity in found.entities] == ["auth.ts", "token.ts", "Redis"]
    assert found.entities[0].aliases == ("auth module",)
    assert (found.claims[1].source, found.claims[1].target) == (0, 2)


def test_last_name_is_the_person_of_the_full_name_before() -> None:
    person = extracted("Mira Okafor joined Acme. Okafor lives in Oslo.").entities[0]
    assert (person.name, person.aliases, len(person.spans)) == ("Mira Okafor", ("Okafor",), 2)


def test_i_and_we_are_the_speaker() -> None:
    found = extracted("I prefer tabs. We use Redis.", speaker="Mira Okafor")
    assert claims("I prefer tabs. We use Redis.", speaker="Mira Okafor") == [
        "Mira Okafor PREFERS tabs",
        "Mira Okafor USES Redis",
    ]
    assert [claim.fact for claim in found.claims] == ["Mira Okafor: I prefer tabs.", "Mira Okafor: We use Redis."]


def test_label_before_a_line_says_who_speaks() -> None:
    assert claims("Mira: I moved to Bergen in 2021. I love it.") == ["Mira LIVES_IN Bergen since 2021-01-01"]


def test_what_is_reported_is_less_certain_than_what_is_said() -> None:
    said = extracted("auth.ts depends on token.ts.").claims[0]
    reported = extracted("The docs say that auth.ts depends on token.ts.").claims[0]
    assert (said.confidence, reported.confidence) == (0.95, 0.45)


def test_span_is_that_of_the_sentence() -> None:
    text = "Hello there. auth.ts depends on token.ts. Bye."
    claim = extracted(text).claims[0]
    assert text[slice(*claim.span)] == "auth.ts depends on token.ts."


@pytest.mark.parametrize(
    ("text", "aspect", "value"),
    [
        ("My cat's name is Lucky.", "cat's name", "Lucky"),
        ("My cat is Lucky.", "cat", "Lucky"),
        ("My favourite band is Up.", "favourite band", "Up"),
        ("My Spotify plan is Free.", "spotify plan", "Free"),
    ],
)
def test_name_may_be_a_word_for_how_somebody_is(text: str, aspect: str, value: str) -> None:
    found = extracted(text)
    assert [(each.aspect, found.entities[each.target].name) for each in found.claims] == [(aspect, value)]


@pytest.mark.parametrize("text", ["The server is Down.", "My boss is Happy.", "Our office is on Fire."])
def test_how_somebody_is_for_the_moment_is_no_value(text: str) -> None:
    assert claims(text) == []


def test_each_noun_that_may_be_a_verb_is_a_verb_that_is_read() -> None:
    """A list of words.txt that loses its heading adds its words to the list before it."""
    assert {form.lemma for forms in FORMS.values() for form in forms} >= WORDS["NOUNS"]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The release date is June 3.", "June 3"),
        ("The release date is 3 June.", "3 June"),
        ("The due date is June 3 now.", "June 3"),
        ("Mom's birthday is June 3.", "June 3"),
        ("Bo's birthday is 14 March 1990", "14 March 1990"),
        ("The anniversary is the 3rd of June.", "3rd of June"),
        ("The deadline is June 3, 2026.", "June 3, 2026"),
        ("The deadline is 2026-06-03.", "2026-06-03"),
        ("The standup is Monday at 9:30.", "Monday"),
    ],
)
def test_a_date_that_is_a_value_is_read_whole(text: str, day: str) -> None:
    found = extracted(text)
    assert [found.entities[claim.target].name for claim in found.claims] == [day]


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("Since February my manager is Raj.", "2026-02-01"),
        ("As of March 1 my manager is Raj.", "2026-03-01"),
        ("As of March 1, my manager is Raj.", "2026-03-01"),
        ("My manager is Raj as of March 1.", "2026-03-01"),
        ("As of June 1 my manager is Raj.", "2026-06-01"),
        ("As of February my manager is Raj.", "2026-02-01"),
        ("As of October my manager is Raj.", "2026-10-01"),
        ("As of Monday my manager is Raj.", "2026-03-16"),
        ("From April my manager is Raj.", "2026-04-01"),
        ("Starting April 1 my manager is Raj.", "2026-04-01"),
        ("Beginning next month my manager is Raj.", "2026-04-01"),
        ("My new manager from next week is Raj.", "2026-03-16"),
    ],
)
def test_a_date_before_a_fact_is_its_beginning(text: str, since: str) -> None:
    assert claims(text) == [f"the user RELATED_TO Raj since {since}"]


@pytest.mark.parametrize(
    "text",
    ["From Monday to Friday my manager is Raj.", "In April my manager is Raj.", "Today the standup is at 10:15."],
)
def test_a_date_before_a_fact_that_is_no_beginning_leaves_it_unread(text: str) -> None:
    assert claims(text) == []
