"""The analysis of text into terms: words, identifiers, scripts, and the fields of a passage."""

from __future__ import annotations

import threading

import pytest

from commonplace.text import tokens
from commonplace.text.languages import natural_language
from commonplace.text.query import analyse_query
from commonplace.text.tokens import MAX_TERM_LENGTH, analyse, clear_cache, fields_of, many_words
from commonplace.types import SEARCH_FIELDS, IndexEntry


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running runners RAN", ["run", "runner", "ran"]),
        ("the cat and the hat", ["cat", "hat"]),
        ("don't use John's", ["use", "john"]),
        ("loginService", ["loginservic", "login", "servic"]),
        ("ConnectionResetError", ["connectionreseterror", "connect", "reset", "error"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("snake_case", ["snakecas", "snake", "case"]),
        ("two-stage", ["twostag", "two", "stage"]),
        ("os.path", ["ospath", "os", "path"]),
        ("__init__", ["init"]),
        ("APIs", ["api"]),
        ("0.27", ["0.27", "0", "27"]),
        ("2024-05-12", ["2024-05-12", "2024", "05", "12"]),
        ("(foo,bar)[0]", ["foo", "bar", "0"]),
        ("use-of_the.word", ["useoftheword", "use", "word"]),
    ],
)
def test_words_and_identifiers_give_these_terms(text: str, terms: list[str]) -> None:
    """These terms are stored in indexes: a change of any needs a new schema version."""
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("数据库配置", ["数据", "据库", "库配", "配置"]),
        ("猫", ["猫"]),
        ("使用Python编程", ["使用", "python", "编程"]),
        ("데이터", ["데이", "이터"]),
        ("データ", ["デー", "ータ"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("ＵＴＦ８", ["utf8", "utf", "8"]),
        ("café ﬁne", ["cafe", "fine"]),
        ("Straße", ["strass"]),
        ("İstanbul ISTANBUL", ["istanbul", "istanbul"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ÉcoleNormale", ["ecolenormal", "ecol", "normal"]),
    ],
)
def test_other_scripts_and_forms_give_these_terms(text: str, terms: list[str]) -> None:
    """A text must be found however its characters were typed, in every script."""
    assert analyse(text) == terms


def test_a_text_of_stop_words_only_keeps_them() -> None:
    """ "To be or not to be" is a query too, and "The Who" a title."""
    assert analyse("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert analyse("The Who") == ["the", "who"]


@pytest.mark.parametrize("text", ["", " \n\t", "?!…—", "\x00", "\ud800", "___", "..."])
def test_a_text_without_words_gives_no_terms(text: str) -> None:
    """Any string is accepted, lone surrogates included."""
    assert analyse(text) == []


def test_a_word_beyond_all_bounds_is_cut_and_does_not_stay_in_memory() -> None:
    """Minified files and encoded data hold words of a million characters."""
    assert analyse("a" * 1_000_000) == ["a" * MAX_TERM_LENGTH]
    assert analyse("é" * 1_000_000) == ["e" * MAX_TERM_LENGTH]
    assert len(analyse("ab-" * 300_000)) == 300_000
    assert len(analyse("猫" * 100_000)) == 99_999


def test_encoded_data_is_not_torn_to_pieces() -> None:
    """A digest split at every digit would fill the index with single letters."""
    assert len(analyse("a3f5b9c1d7e2a4f6b8c0")) == 1


def test_analysis_is_the_same_before_and_after_the_cache_was_cleared_and_in_every_thread() -> None:
    """The cache and the stemmer behind it are shared between threads."""
    text = " ".join(f"fooBar{n} running{n}Tests" for n in range(300))
    expected = analyse(text)
    results: list[list[str]] = []

    def work() -> None:
        for _ in range(5):
            clear_cache()
            results.append(analyse(text))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 20


def entry(
    *, title: str = "", heading: str = "", path: str = "", text: str = "", summary: str = "", tags: tuple[str, ...] = ()
) -> IndexEntry:
    return IndexEntry(1, 1, "n", "artifact", "", "", tags, title, path, heading, summary, text, b"", b"")


def fields(**values: str) -> dict[str, list[str]]:
    return fields_of(entry(tags=("Red Tape", "x"), **values))


def test_fields_are_exactly_those_with_weights() -> None:
    """Index, tail and reference sum over the same fields."""
    assert list(fields()) == list(SEARCH_FIELDS)


def test_title_holds_the_distinct_words_of_title_heading_and_path() -> None:
    """A file named after its title must not count twice."""
    made = fields(title="Billing guide", heading="Refunds", path="docs/billing.md")
    assert made["title"] == ["bill", "guid", "refund", "doc", "billingmd", "md"]
    assert made["tags"] == ["red", "tape", "x"]


def test_a_summary_that_the_text_contains_is_left_out() -> None:
    """The first paragraph is often both, and would lift its own passage twice."""
    assert fields(text="We chose Postgres. Then we slept.", summary="We chose Postgres.")["summary"] == []
    assert fields(text="Then we slept.", summary="We chose Postgres.")["summary"] == ["chose", "postgr"]


def test_single_characters_are_indexed_beside_their_pairs() -> None:
    """A query of one Han character would otherwise find nothing."""
    assert fields(text="黑猫")["content"] == ["黑猫", "黑", "猫"]
    assert fields(text="猫")["content"] == ["猫"]


def test_few_words_are_kept_except_while_many_are_to_come() -> None:
    """A server would hold the terms of every word it ever met; a large corpus is analysed twice as fast with them."""
    text = " ".join(f"word{number}" for number in range(10_000))
    terms = analyse(text)
    words = tokens.words_in("english", "english")
    assert 0 < len(words) <= 4_096
    with many_words():
        assert analyse(text) == terms
        assert len(words) == 10_000
    assert len(words) == 0
    assert analyse(text) == terms
    assert len(words) <= 4_096


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("src/login.py", "x = 1", ["python"]),
        ("Login.TS", "", ["typescript"]),
        ("notes.md", "def f(x):\n    return x", []),
        ("", "async def load(path: str,\n    size: int = 3) -> str:\n    return path", ["python"]),
        ("", "def load(path)\n  File.read(path)\nend", ["rubi"]),
        ("", "function load(path) { return path }", ["javascript"]),
        ("", "function load($path) { return $path; }", ["php"]),
        ("", "public static int load(String path) throws IOException {", ["java"]),
        ("", "func (s *Store) Load(path string) error {", ["go", "golang"]),
        ("", "pub fn load<T>(path: &str) -> T {", ["rust"]),
        ("", "The function of a def (see above) is public: it ends here.", []),
        ("", "", []),
    ],
)
def test_code_is_found_by_the_name_of_its_language(path: str, text: str, names: list[str]) -> None:
    """Who asks for a Python function is answered by one that does not say "Python"."""
    assert fields_of(entry(path=path, text=text))["tags"] == names


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Anna wohnt seit dem Sommer in einer kleinen Wohnung.", "german"),
        ("Les factures doivent être payées avant le 25 de chaque mois.", "french"),
        ("¿Dónde está la contraseña del wifi?", "spanish"),
        ("Le fatture devono essere pagate entro il 25 di ogni mese.", "italian"),
        ("As faturas devem ser pagas até o dia 25 de cada mês.", "portuguese"),
        ("De rekeningen moeten voor het einde van de maand worden betaald.", "dutch"),
        ("Fakturorna ska betalas före den 25 i varje månad.", "swedish"),
        ("Laskut on maksettava niin pian kuin se on mahdollista, eikä myöhemmin.", "finnish"),
        ("Rachunki należy płacić do 25 dnia każdego miesiąca, nie później niż się da.", "polish"),
        ("Faturaların her ayın sonuna kadar ödenmesi gerekir, ama bu ay için değil.", "turkish"),
        ("Где живёт Аня?", "russian"),
        ("Πού μένει η Άννα;", "greek"),
        ("أين تسكن آنا؟", "arabic"),
        ("बैठक कब है?", "hindi"),
        ("Де живе Ганна? Її немає.", "english"),
        ("The plants die in an hour; what was in the soil?", "english"),
        ("Las Vegas", "english"),
        ("Chef de cuisine, salary and hours", "english"),
        ("def die(an, was): return was", "english"),
        ("José met Zoë at the café in São Paulo", "english"),
        ("数据库", "english"),
        ("", "english"),
    ],
)
def test_a_text_is_of_the_language_of_its_letters_and_function_words(text: str, language: str) -> None:
    """What is not clearly another language is English: an English text must never lose its stems."""
    assert natural_language(text) == language


@pytest.mark.parametrize(
    ("text", "language", "terms"),
    [
        ("Die Häuser waren alt", "german", ["haus", "alt"]),
        ("was an die Lieferanten ging", "german", ["lieferant", "ging"]),
        ("nos réunions", "french", ["reunion"]),
        ("las reuniones", "spanish", ["reunion"]),
        ("с поставщиками", "russian", ["поставщик"]),
        ("loginService und utf8", "german", ["loginservic", "login", "servic", "utf8", "utf", "8"]),
        ("die", "german", ["die"]),
    ],
)
def test_words_are_stemmed_in_the_language_of_their_text(text: str, language: str, terms: list[str]) -> None:
    """These terms are stored in indexes: a change of any needs a new schema version."""
    assert analyse(text, language) == terms


def test_a_passage_is_analysed_in_its_own_language_and_its_path_as_english() -> None:
    made = fields(text="Die Rechnungen müssen bis zum Ende des Monats bezahlt werden.", path="docs/services.md")
    assert made["content"] == ["rechnung", "end", "monat", "bezahlt"]
    assert made["title"] == ["doc", "servicesmd", "servic", "md"]


def test_a_word_of_a_query_has_a_term_for_each_language_whose_stem_differs() -> None:
    """Its stop words are those of the language that it is in, whatever the passages are in."""
    assert analyse_query("Wer prüft die Verträge?", ("german",)).words == (("pruft",), ("vertrag",))
    assert analyse_query("Rechnungen", ("french", "german")).words == (("rechnungen", "rechnung"),)
    assert analyse_query("what the services die of", ("german",)).words == (("servic",), ("die",))
    assert analyse_query("what was the").terms == ("what", "was", "the")


def test_a_word_that_is_said_twice_stands_there_twice_with_all_its_terms() -> None:
    """Of a word that is said often no more than three times count, whatever it is called in other languages."""
    asked = analyse_query("Rechnungen, Rechnungen, Rechnung", ("german",))
    assert asked.words == (("rechnungen", "rechnung"), ("rechnungen", "rechnung"), ("rechnung",))
    assert asked.terms == ("rechnungen", "rechnung", "rechnungen", "rechnung", "rechnung")
    assert analyse_query("error " * 9).terms == ("error",) * 3
    assert analyse_query("东京北京").terms.count("京") == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("我什么时候去北京？", ["北京", "北", "京"]),
        ("我的狗叫什么名字？", ["狗", "名字", "名", "字"]),
        ("猫", ["猫"]),
        ("什么", ["什么"]),
        ("誕生日はいつですか", ["誕生", "生日", "誕", "生", "日"]),
        ("りんごを食べました", ["りん", "んご", "食"]),
        ("ﾜｲﾌｧｲはどこ", ["ワイ", "イフ", "ファ", "ァイ"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("회의는 언제 있나요?", ["회의"]),
        ("치과 의사가 누구예요?", ["치과", "의사"]),
        ("언제", ["언제"]),
    ],
)
def test_what_only_asks_or_joins_is_no_word_of_a_chinese_japanese_or_korean_query(query: str, words: list[str]) -> None:
    """A question of ten characters has seven that no answer holds."""
    assert [term for (term,) in analyse_query(query).words] == words


def test_pairs_across_words_are_looked_for_and_not_missed() -> None:
    """成都 ends like "all", and is a city."""
    asked = analyse_query("成都的餐厅")
    assert "成都" in asked.pairs
    assert ("成都",) not in asked.words
    assert set(asked.pairs) < set(asked.terms)
