"""Questions in other languages than English, as people ask them, over what they had remembered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import commonplace
from commonplace.engine import Engine, maintenance
from commonplace.ranking.bm25 import Statistics, inverse_document_frequency
from commonplace.ranking.calibration import calibration_of
from commonplace.search.signals import total_rarity

MEMORIES = {
    "chinese": """
        我下周五要去北京出差，住在国贸附近的酒店。
        女儿的生日是三月十五日，她想要一辆自行车。
        家里的无线网密码写在冰箱旁边的便签上。
        我对花生过敏，不能吃宫保鸡丁。
        我们决定把数据库从MySQL迁移到PostgreSQL。
        王医生是我的牙医，诊所在中山路。
        妈妈喜欢喝龙井茶，每天下午泡一壶。
        项目的截止日期推迟到了十月底。
        小狗的名字叫豆豆，今年三岁了。
        上个月的电费是三百二十元。
        我在成都读的大学，专业是建筑学。
        周末我通常去游泳馆游泳。
        会议室的投影仪坏了，已经报修。
        张伟负责支付模块的代码审查。
    """,
    "japanese": """
        私は横浜のマンションに住んでいます。
        娘の誕生日は六月二十日です。
        データベースはPostgreSQLに決めました。
        母はエビとカニのアレルギーがあります。
        来週の火曜日に大阪へ出張します。
        かかりつけの歯医者は田中先生です。
        猫の名前はモモで、今年五歳になりました。
        請求書の締め切りは毎月二十五日です。
        朝ごはんにはりんごとヨーグルトを食べます。
        会議室のプロジェクターが壊れています。
        妻は京都の大学で建築を勉強しました。
        週末はたいていプールで泳ぎます。
        家のワイファイのパスワードは冷蔵庫に貼ってあります。
        佐藤さんが決済モジュールのレビューを担当します。
    """,
    "korean": """
        나는 부산에 있는 아파트에 살고 있다.
        딸의 생일은 6월 20일이다.
        데이터베이스는 포스트그레스로 결정했다.
        어머니는 새우 알레르기가 있으시다.
        다음 주 화요일에 대구로 출장을 간다.
        내 치과 의사는 김민수 선생님이다.
        고양이 이름은 모모이고 올해 다섯 살이 되었다.
        청구서 마감일은 매달 25일이다.
        아침에는 사과와 요구르트를 먹는다.
        회의실 프로젝터가 고장 났다.
        아내는 서울에서 건축을 공부했다.
        주말에는 보통 수영장에서 수영한다.
        집 와이파이 비밀번호는 냉장고에 붙어 있다.
        박지훈이 결제 모듈의 코드 리뷰를 맡고 있다.
    """,
    "german": """
        Anna wohnt seit dem Sommer in einer kleinen Wohnung in Köln.
        Meine Tochter wurde am 20. Juni geboren und wünscht sich ein Fahrrad.
        Wir haben uns für PostgreSQL als Datenbank entschieden.
        Meine Mutter ist allergisch gegen Erdnüsse.
        Die Rechnungen müssen bis zum 25. jedes Monats bezahlt werden.
        Unser Zahnarzt heißt Dr. Müller, die Praxis ist in der Gartenstraße.
        Der Hund heißt Bello und ist drei Jahre alt.
        Nächsten Dienstag fahre ich mit dem Zug nach Hamburg.
        Zum Frühstück esse ich Äpfel und Joghurt.
        Der Beamer im Besprechungsraum ist kaputt.
        Mein Bruder hat in Wien Architektur studiert.
        Das Passwort für das WLAN hängt am Kühlschrank.
        Frau Schröder prüft die Verträge mit den Lieferanten.
        Am Wochenende gehe ich meistens schwimmen.
    """,
    "french": """
        Anne habite depuis cet été dans un petit appartement à Lyon.
        Ma fille est née le 20 juin et elle voudrait un vélo.
        Nous avons choisi PostgreSQL comme base de données.
        Ma mère est allergique aux arachides.
        Les factures doivent être payées avant le 25 de chaque mois.
        Notre dentiste s'appelle le docteur Moreau, son cabinet est rue des Lilas.
        Le chien s'appelle Médor et il a trois ans.
        Mardi prochain je prends le train pour Marseille.
        Au petit déjeuner je mange des pommes et un yaourt.
        Le projecteur de la salle de réunion est en panne.
        Mon frère a étudié l'architecture à Genève.
        Le mot de passe du wifi est collé sur le frigo.
        Madame Lefèvre vérifie les contrats avec les fournisseurs.
        Le week-end, je vais nager à la piscine.
    """,
    "spanish": """
        Ana vive desde el verano en un piso pequeño de Valencia.
        Mi hija nació el 20 de junio y quiere una bicicleta.
        Hemos elegido PostgreSQL como base de datos.
        Mi madre es alérgica a los cacahuetes.
        Las facturas se deben pagar antes del 25 de cada mes.
        Nuestro dentista se llama doctor Romero y su consulta está en la calle Mayor.
        El perro se llama Toby y tiene tres años.
        El próximo martes viajo en tren a Sevilla.
        Para desayunar como manzanas y un yogur.
        El proyector de la sala de reuniones está averiado.
        Mi hermano estudió arquitectura en Granada.
        La contraseña del wifi está pegada en la nevera.
        La señora Núñez revisa los contratos con los proveedores.
        Los fines de semana voy a nadar a la piscina.
    """,
    "russian": """
        Аня с лета живёт в маленькой квартире в Казани.
        Моя дочь родилась 20 июня и хочет велосипед.
        Мы выбрали PostgreSQL в качестве базы данных.
        У моей мамы аллергия на арахис.
        Счета нужно оплачивать до 25 числа каждого месяца.
        Нашего стоматолога зовут доктор Соколов, его кабинет на улице Мира.
        Собаку зовут Шарик, ей три года.
        В следующий вторник я еду на поезде в Тверь.
        На завтрак я ем яблоки и йогурт.
        Проектор в переговорной комнате сломался.
        Мой брат изучал архитектуру в Самаре.
        Пароль от вайфая висит на холодильнике.
        Госпожа Орлова проверяет договоры с поставщиками.
        По выходным я хожу плавать в бассейн.
    """,
}

QUESTIONS = {
    "chinese": """
        1 我什么时候去北京出差？
        2 女儿的生日是哪一天？
        3 无线网的密码在哪里？
        4 我对什么过敏？
        5 我们的数据库要迁移到什么？
        6 我的牙医是谁？
        7 妈妈喜欢喝什么茶？
        8 项目的截止日期是什么时候？
        9 我家小狗叫什么名字？
        10 上个月电费多少钱？
        11 我大学读的是什么专业？
        14 谁负责支付模块？
    """,
    "japanese": """
        1 私はどこに住んでいますか？
        2 娘の誕生日はいつですか？
        3 データベースは何に決めましたか？
        4 母は何のアレルギーがありますか？
        5 大阪への出張はいつですか？
        6 歯医者は誰ですか？
        7 猫の名前は何ですか？
        8 請求書の締め切りはいつ？
        9 朝ごはんに何を食べますか？
        10 会議室の何が壊れていますか？
        13 ﾜｲﾌｧｲのパスワードはどこ？
        14 決済モジュールのレビューは誰が担当ですか？
    """,
    "korean": """
        1 나는 어디에 살고 있나요?
        2 딸의 생일은 언제예요?
        3 데이터베이스는 무엇으로 결정했나요?
        4 어머니는 무슨 알레르기가 있나요?
        5 대구 출장은 언제 가나요?
        6 치과 의사가 누구예요?
        7 고양이 이름이 뭐예요?
        8 청구서는 마감일이 언제인가요?
        9 아침에 뭘 먹어요?
        10 회의실에서 뭐가 고장 났어?
        13 와이파이 비밀번호 어디 있어?
        14 결제 모듈은 누가 맡고 있어요?
    """,
    "german": """
        1 Wo wohnt Anna?
        2 Wann ist meine Tochter geboren?
        3 Für welche Datenbank haben wir uns entschieden?
        4 Wogegen ist Mutter allergisch?
        5 Bis wann muss ich die Rechnung bezahlen?
        6 Wie heißt unser Zahnarzt?
        7 Wie alt ist der Hund?
        8 Wann fahren wir nach Hamburg?
        9 Was esse ich zum Frühstück?
        10 Was ist im Besprechungsraum kaputt?
        12 Wo ist das Passwort fürs WLAN?
        13 Wer prüft den Vertrag mit dem Lieferanten?
    """,
    "french": """
        1 Où habite Anne ?
        2 Quand ma fille est-elle née ?
        3 Quelle base de données avons-nous choisie ?
        4 À quoi ma mère est-elle allergique ?
        5 Quand faut-il payer la facture ?
        6 Comment s'appelle notre dentiste ?
        7 Quel âge a le chien ?
        8 Quand est-ce que je prends le train pour Marseille ?
        9 Qu'est-ce que je mange au petit déjeuner ?
        10 Qu'est-ce qui est en panne dans la salle de réunion ?
        12 Où est le mot de passe du wifi ?
        13 Qui vérifie le contrat avec le fournisseur ?
    """,
    "spanish": """
        1 ¿Dónde vive Ana?
        2 ¿Cuándo nació mi hija?
        3 ¿Qué base de datos hemos elegido?
        4 ¿A qué es alérgica mi madre?
        5 ¿Cuándo hay que pagar la factura?
        6 ¿Cómo se llama nuestro dentista?
        7 ¿Cuántos años tiene el perro?
        8 ¿Qué día viajo a Sevilla?
        9 ¿Qué como para desayunar?
        10 ¿Qué está averiado en la sala de reuniones?
        12 ¿Dónde está la contraseña del wifi?
        13 ¿Quién revisa el contrato con el proveedor?
    """,
    "russian": """
        1 Где живёт Аня?
        2 Когда родилась моя дочь?
        3 Какую базу данных мы выбрали?
        4 На что у мамы аллергия?
        5 До какого числа нужно оплатить счёт?
        6 Как зовут нашего стоматолога?
        7 Как зовут нашу собаку?
        8 Когда я еду в Тверь?
        9 Что я ем на завтрак?
        10 Что сломалось в переговорной?
        12 Где пароль от вайфая?
        13 Кто проверяет договор с поставщиком?
    """,
}

ASKED = [
    (language, *line.strip().split(" ", 1))
    for language, lines in QUESTIONS.items()
    for line in lines.strip().splitlines()
]


def remember(book: Engine, language: str) -> None:
    lines = MEMORIES[language].strip().splitlines()
    book.remember_many([{"id": f"{language} {n}", "content": line.strip()} for n, line in enumerate(lines, 1)])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    """One store with a namespace for each language."""
    directory = tmp_path_factory.mktemp("languages")
    books = {name: commonplace.open(directory, namespace=name) for name in MEMORIES}
    for name, book in books.items():
        remember(book, name)
    yield books
    for book in books.values():
        book.close()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One namespace with the memories of all."""
    with commonplace.open(tmp_path_factory.mktemp("together")) as book:
        for name in MEMORIES:
            remember(book, name)
        yield book


def found(book: Engine, question: str) -> list[str]:
    return [hit.owner_id for hit in book.recall(question, limit=5).hits]


@pytest.mark.parametrize(("language", "number", "question"), ASKED)
def test_a_question_finds_the_memory_that_shares_its_words(
    alone: dict[str, Engine], language: str, number: str, question: str
) -> None:
    """Asked with default settings, in the inflection that the question needs."""
    assert f"{language} {number}" in found(alone[language], question)


@pytest.mark.parametrize(("language", "number", "question"), ASKED)
def test_a_question_finds_it_among_memories_in_other_languages(
    together: Engine, language: str, number: str, question: str
) -> None:
    """A question is stemmed in each language that the namespace holds."""
    assert f"{language} {number}" in found(together, question)


def test_another_inflection_finds_a_memory_not_yet_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tail knows the languages of its passages as the index does."""
    with commonplace.open(tmp_path) as book:
        monkeypatch.setattr(maintenance, "bring_up_to_date", lambda *_arguments, **_options: None)
        book.remember("Die Lieferanten haben die Verträge gekündigt.")
        book.remember("Der Ofen ist seit gestern kaputt.")
        hits = book.search("Vertrag mit Lieferant", method="bm25", min_score=0.0).hits
        assert [hit.text for hit in hits] == ["Die Lieferanten haben die Verträge gekündigt."]


def test_forgetting_leaves_no_term_of_another_language(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember("Die Lieferanten haben die Verträge gekündigt.", id="gone")
        book.remember("Der Ofen ist seit gestern kaputt.")
        receipt = book.forget("gone")
        assert receipt.verified
        assert book.search("Lieferant", method="bm25", min_score=0.0).hits == ()


def test_a_word_has_one_rarity_whatever_it_is_called() -> None:
    held = {"rechnungen": (0, 1, 0, 0), "rechnung": (0, 4, 2, 0)}
    statistics = Statistics(9, np.zeros(4, np.int64), held)
    word = ("rechnungen", "rechnung")
    assert total_rarity([word, word], statistics) == pytest.approx(2 * inverse_document_frequency(9, 4))


def test_what_is_asked_in_a_script_without_spaces_is_as_likely_as_its_words_say(tmp_path: Path) -> None:
    """The embedder knows nothing of these scripts: that it finds nothing alike is no sign that nothing answers."""
    with commonplace.open(tmp_path) as book:
        book.remember_many([{"content": line.strip()} for line in MEMORIES["chinese"].strip().splitlines()])
        result = book.recall("数据库")
        assert result.hits[0].text == "我们决定把数据库从MySQL迁移到PostgreSQL。"
        assert result.hits[0].confidence == "sure"
        signals = book.why(result, result.hits[0].id).signals
        evidence = sum(signal.evidence for signal in signals) + calibration_of("").intercept
        assert result.hits[0].probability == pytest.approx(1 / (1 + math.exp(-evidence)), abs=1e-4)
