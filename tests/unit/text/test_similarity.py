"""When two texts say the same: pairs judged by people, and what is stored of a text to find those like it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from commonplace.text.similarity import BANDS, contained_share, digest, is_near_duplicate, normal_form, signature

LONG = (
    "During the planning meeting the team agreed that the billing service keeps its invoices in the central database, "
    "while attachments are written to object storage and removed after the retention period of ninety days."
)

SAME = [
    ("We chose Postgres for billing", "We chose Postgres for billing."),
    ("We chose Postgres for billing", "  we CHOSE postgres\n for   billing!  "),
    ("We chose Postgres for billing", "“We chose Postgres for billing.”"),
    ("We chose Postgres for billing", "- We chose Postgres for the billing"),
    ("We chose Postgres for billing", "We chose **Postgres** for billing"),
    ("The café opens at 9", "The cafe\u0301 opens at 9"),
    ("The server runs on ｐｏｒｔ 8080", "The server runs on port 8080"),
    ("don't deploy on Fridays", "Don’t deploy on Fridays."),
    ("We do not deploy to production", "We don't deploy to production"),
    ("The build cannot run offline", "The build can't run offline"),
    ("It's written in Rust", "It is written in Rust"),
    ("She will not attend", "She won't attend"),
    ("The user prefers dark mode", "User prefers dark mode"),
    ("Alice owns billing; Bob owns search", "Alice owns billing, Bob owns search"),
    ("Meeting Tuesday with Alice", "Meeting on Tuesday with Alice"),
    ("a well-known limit of the parser", "A well known limit of the parser"),
    ("Pages 3–5 of the report", "Pages 3-5 of the report"),
    ("The parser, the lexer and the printer", "The parser, lexer and printer"),
    ("What database does billing use?", "what database does billing use?"),
    ("我们使用数据库。", "我们使用数据库"),
    ("我们选择 Python 做后端", "我们选择Python做后端。"),
    ("👍", "👍"),
    ("# Decision\nUse UTC everywhere", "Decision: use UTC everywhere"),
    (LONG, LONG.replace("removed after", "removed  After")),
    ("", ""),
]

DIFFERENT = [
    ("The limit is 10", "The limit is 100"),
    ("The limit is 10² requests", "The limit is 102 requests"),
    ("The limit is -5", "The limit is 5"),
    ("The limit is 5.5", "The limit is 55"),
    ("The file has 5 MB", "The file has 5 Mb"),
    ("The file has 5MB", "The file has 5GB"),
    ("The trip takes 5 minutes", "The trip takes 5 hours"),
    ("The price is $5", "The price is €5"),
    ("Latency < 5 ms", "Latency > 5 ms"),
    ("Released on 2024-03-01", "Released on 2024-03-02"),
    ("Released in March", "Released in May"),
    ("We meet on Tuesday", "We meet on Thursday"),
    ("We use Postgres", "We do not use Postgres"),
    ("We use Postgres", "We don't use Postgres"),
    ("We use Postgres", "We no longer use Postgres"),
    ("We always deploy on Fridays", "We never deploy on Fridays"),
    ("The endpoint is safe", "The endpoint is unsafe"),
    ("The user is happy", "The user is un-happy"),
    ("Reply with citations", "Reply without citations"),
    ("We use Postgres", "We used Postgres"),
    ("We used to use Postgres", "We use Postgres"),
    ("The server is down", "The server was down"),
    ("The server is down", "The server is up"),
    ("The flag is on", "The flag is off"),
    ("We will migrate", "We migrate"),
    ("We should migrate", "We must migrate"),
    ("Alice called Bob", "Alice is called Bob"),
    ("Alice is a manager", "Alice has a manager"),
    ("auth.ts depends on token.ts", "token.ts depends on auth.ts"),
    ("Alice depends on Bob", "Bob depends on Alice"),
    ("We moved from Redis to Postgres", "We moved from Postgres to Redis"),
    ("Moved to Postgres from Redis", "Moved from Postgres to Redis"),
    ("Deploy staging, then production", "Deploy production, then staging"),
    ("Priorities: latency, cost, quality", "Priorities: quality, cost, latency"),
    ("Alice met Bob. She liked him.", "She liked him. Alice met Bob."),
    ("First build the wheel. Second run the tests.", "Second run the tests. First build the wheel."),
    ("Bob reports to Alice", "Carol reports to Alice"),
    ("The config is in /etc/app.toml", "The config is in /etc/App.toml"),
    ("Delete it with git branch -d", "Delete it with git branch -D"),
    ("Use login_service for that", "Use loginService for that"),
    ("Use version 1.2.3", "Use version 1.2.4"),
    ("Written in C", "Written in C++"),
    ("Written in C#", "Written in C++"),
    ("Python is faster than Ruby", "Python is slower than Ruby"),
    ("Python is faster", "Python is the fastest"),
    ("Requests increase at night", "Requests decrease at night"),
    ("Open Windows settings", "Open window settings"),
    ("The new policy", "The news policy"),
    ("The local is wrong", "The locale is wrong"),
    ("Check the important module", "Check the import module"),
    ("The organ was founded", "The organization was founded"),
    ("Buildings fail", "Building fails"),
    ("Few users complained", "A few users complained"),
    ("Plan A failed", "Plan failed"),
    ("Send it to us", "Send IT to US"),
    ("I like tea", "You like tea"),
    ("We use Postgres", "We use Postgres?"),
    ("[x] deploy the app", "[ ] deploy the app"),
    ("We keep ~~daily~~ backups", "We keep daily backups"),
    ("Alice likes cats and dogs", "Alice likes cats or dogs"),
    ("We use Postgres", "We use Postgres and Redis"),
    ("Order by latency", "Order by latency DESC"),
    ("x = [1]", "x = 1"),
    ('port: "8080"', "port: 8080"),
    ('a 5" nail', "a 5' nail"),
    ("the .env file", "the env file"),
    ("Run `bd help duplicate` first", "Run `bd help duplicates` first"),
    ("SELECT * FROM users", "SELECT id FROM users"),
    ("我们使用数据库", "我们不使用数据库"),
    ("👍", "👎"),
    ("ok 👍", "ok 👎"),
    ("the", "of"),
    ("", "something"),
    (LONG, LONG.replace("ninety", "thirty")),
    (LONG, LONG.replace("central", "neutral")),
    (LONG, LONG.replace("team", "teams did not agree; team")),
    (LONG, LONG.replace("agreed", "disagreed")),
    (LONG, LONG.replace("after", "before")),
    (LONG, LONG.replace("removed", "moved")),
    (LONG, LONG + " Invoices are exempt."),
    (LONG + " Costs reach a million euros.", LONG + " Costs reach a billion euros."),
    (LONG + " Keep the maximum.", LONG + " Keep the minimum."),
    (LONG + " Ask the employer.", LONG + " Ask the employee."),
    (LONG + " See Hannover.", LONG + " See Hanover."),
    (LONG + " See node serverabc1.", LONG + " See node serverabc2."),
]


@pytest.mark.parametrize(("new", "old"), SAME)
def test_texts_that_say_the_same_are_near_duplicates_and_found_as_such(new: str, old: str) -> None:
    """The second is not stored again; it must share a digest or a band with the first, or nobody would compare them."""
    assert is_near_duplicate(new, old)
    assert is_near_duplicate(old, new)
    ours, theirs = signature(new), signature(old)
    assert ours.digest == theirs.digest or set(ours.bands) & set(theirs.bands) or not ours.bands


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_texts_that_differ_in_anything_that_counts_are_no_duplicates(new: str, old: str) -> None:
    """Taking them for the same would lose what the second one says."""
    assert not is_near_duplicate(new, old)
    assert not is_near_duplicate(old, new)
    assert digest(new) != digest(old)


def test_table_is_large_and_balanced_enough_to_mean_something() -> None:
    """A judgement that always says the same thing must not look good."""
    assert len(SAME) >= 25
    assert len(DIFFERENT) >= 60


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  A\tb\n c ", "a b c"),
        ("“Quoted.”", "quoted"),
        ('"A" or "B"', '"a" or "b"'),
        ("Straße", "strasse"),
        ("Is it?", "is it?"),
        ("...", "..."),
        ("5!", "5!"),
        ("x² + ½", "x^2 + ^1\u20442"),
        ("git -D", "git -D"),
        ("5 MB of RAM", "5 MB of ram"),
    ],
)
def test_normal_form_keeps_what_counts(text: str, form: str) -> None:
    """What has the same form is taken for the same text without another look."""
    assert normal_form(text) == form


def test_signature_is_what_was_stored_by_every_release() -> None:
    """Bands and digests lie on disk; a change would make every old memory unfindable as a duplicate."""
    found = signature("We chose Postgres for billing, not MySQL")
    assert found.digest == "3d080bfa280e90b3468254326b278b50db4e1cf54ba887e314b9c1a471c7a535"
    assert found.bands == (
        129781209467306433,
        414877964992657484,
        2143232229074047150,
        1222957730659714912,
        364279754198923635,
    )


def test_signature_does_not_depend_on_the_process() -> None:
    """Python salts its own hashes anew in each process."""
    code = f"from commonplace.text.similarity import signature; print(signature({LONG!r}).bands)"
    for seed in "1", "2":
        done = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(signature(LONG).bands)


@pytest.mark.parametrize("text", ["", "Yes.", "👍👍", "use Postgres", "猫"])
def test_very_short_text_has_only_a_digest(text: str) -> None:
    """Two words are in too many texts to be worth comparing."""
    assert signature(text).bands == ()


def test_unspaced_script_has_bands() -> None:
    """A sentence in Chinese is one word to a splitter at spaces."""
    assert len(signature("我们选择了新的数据库").bands) == BANDS


def test_unrelated_texts_share_no_band() -> None:
    """Each shared band costs a comparison at every write."""
    assert not set(signature(LONG).bands) & set(signature("Alice plays the violin on Sundays in Kyoto").bands)


PASSAGE = "Yesterday the team met. They chose Postgres for billing since it was known to all of them. Then they left."


@pytest.mark.parametrize(
    ("text", "share"),
    [
        (PASSAGE, 1.0),
        ("they chose POSTGRES for billing, since it was known to all", 1.0),
        ("chose Postgres for billing", 1.0),
        ("chose Postgres for search", 0.0),
        ("ostgres for billing", 0.0),
        ("They chose Postgres for billing since nobody knew anything else at all", 2 / 8),
        ("We never said anything of the kind to anyone here", 0.0),
        ("", 0.0),
        ("🎉", 0.0),
    ],
)
def test_contained_share_tells_recalled_text_from_new(text: str, share: float) -> None:
    """What a search returned must not come back as a new memory."""
    assert contained_share(text, PASSAGE) == pytest.approx(share)


def test_contained_share_reads_unspaced_scripts_character_by_character() -> None:
    """Otherwise a Chinese passage is one word, contained in nothing but itself."""
    assert contained_share("我们选择了新的数据库", "昨天我们选择了新的数据库，因为它快。") == 1.0
    assert contained_share("👍", "well done 👍") == 1.0


# The interpreter's own digests are those of `hashlib`, without what that loads.
