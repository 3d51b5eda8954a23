"""A graph goes to Graphiti's JSON and comes back; what Graphiti wrote comes in, and what is wrong in it is told."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine.engine import Engine
from commonplace.errors import ConfigError, NotFoundError, StoreError, UsageError

ANN, ACME, GLOBEX = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "123")
EPISODE, FACT, OLD = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "456")
EDGE: dict[str, Any] = {
    "uuid": FACT,
    "group_id": "main",
    "source_node_uuid": ANN,
    "target_node_uuid": ACME,
    "created_at": "2026-01-29T12:00:00Z",
    "name": "WORKS_AT",
    "fact": "Ann works at Acme as an engineer",
    "episodes": [EPISODE, "gone"],
    "expired_at": None,
    "valid_at": "2025-05-01T00:00:00Z",
    "invalid_at": None,
    "attributes": {"role": "engineer"},
}
THEIRS: dict[str, Any] = {
    "episodic_nodes": [
        {
            "uuid": EPISODE,
            "name": "standup",
            "group_id": "main",
            "labels": [],
            "created_at": "2026-01-29T12:00:00.123456Z",
            "source": "message",
            "source_description": "a chat",
            "content": "Ann: I work at Acme since May",
            "valid_at": "2026-01-28T09:30:00+01:00",
            "entity_edges": [FACT],
        }
    ],
    "entity_nodes": [
        {
            "uuid": id_,
            "name": name,
            "group_id": "main",
            "labels": labels,
            "created_at": "2026-01-29T12:00:00Z",
            "name_embedding": [0.1, 0.2],
            "summary": f"{name} is known",
            "attributes": {},
        }
        for id_, name, labels in (
            (ANN, "Ann", ["Entity", "Person"]),
            (ACME, "Acme", ["Entity", "Organization"]),
            (GLOBEX, "Globex", ["Entity", "Bigcompany"]),
        )
    ],
    "entity_edges": [
        EDGE,
        {
            **EDGE,
            "uuid": OLD,
            "target_node_uuid": GLOBEX,
            "fact": "Ann works at Globex",
            "episodes": [],
            "valid_at": "2020-01-01T00:00:00Z",
            "invalid_at": "2025-05-01T00:00:00Z",
            "expired_at": "2026-01-29T12:00:00Z",
        },
    ],
    "episodic_edges": [
        {
            "uuid": "x",
            "group_id": "main",
            "source_node_uuid": EPISODE,
            "target_node_uuid": id_,
            "created_at": "2026-01-29T12:00:00Z",
        }
        for id_ in (ANN, ACME)
    ],
}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "one") as engine:
        yield engine


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "other") as engine:
        yield engine


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def lived(book: Engine) -> Engine:
    """Fill a graph with all that can happen to one."""
    graph = book.graph
    graph.add_episode("Ann lives in Berlin. Acme is an organization.", reference_time="2024-01-01", group_id="a")
    graph.add_episode("Ann moved to Munich in May 2024.", reference_time="2024-06-01", name="news", origin="user")
    graph.add_episode("auth.ts depends on token.ts.", source_description="review", reference_time="2024-06-02")
    graph.add_triplet("Ann", "WORKS_FOR", "Acme", valid_from="2023-01-01", valid_to="2024-01-01", reason="HR")
    graph.add_triplet("Ann", "WORKS_FOR", "Globex", fact="Ann works for Globex\u2014「東京」")
    graph.merge("Acme", "Globex", reason="one firm")
    return book


def exported(engine: Engine) -> dict[str, Any]:
    document = io.StringIO()
    engine.graph.export_graphiti(document)
    found: dict[str, Any] = json.loads(document.getvalue())
    return found


def test_what_graphiti_has_fields_for_comes_back(book: Engine, other: Engine, tmp_path: Path) -> None:
    """Words, names, types, times, groups, who says what; `commonplace export` brings over the rest."""
    done = lived(book).graph.export_graphiti(tmp_path / "graph.json")
    assert done.path == tmp_path / "graph.json"
    taken = other.graph.import_graphiti(tmp_path / "graph.json")
    counted = (done.episodes, done.entities, done.relations, 0)
    assert (taken.episodes, taken.entities, taken.relations, taken.known) == counted
    assert exported(other) == exported(book)
    assert other._runtime.store.check() == []
    assert [each.uuid for each in other.graph.search_edges("where does Ann live")] == [
        each.uuid for each in book.graph.search_edges("where does Ann live")
    ]


def test_second_import_changes_nothing(book: Engine, tmp_path: Path) -> None:
    lived(book).graph.export_graphiti(tmp_path / "graph.json")
    before = exported(book)
    taken = book.graph.import_graphiti(tmp_path / "graph.json")
    assert (taken.episodes, taken.entities, taken.relations) == (0, 0, 0)
    assert taken.known == sum(len(before[name]) for name in ("episodic_nodes", "entity_nodes", "entity_edges"))
    assert exported(book) == before


def test_graphitis_own_graph_comes_in_with_its_ids(book: Engine, tmp_path: Path) -> None:
    taken = book.graph.import_graphiti(written(tmp_path / "theirs.json", THEIRS))
    assert (taken.episodes, taken.entities, taken.relations, taken.known) == (1, 3, 2, 0)
    ann, fact, old = book.graph.entity("Ann"), book.graph.relation(FACT), book.graph.relation(OLD)
    assert (ann.uuid, ann.entity_type, ann.summary, ann.group_id) == (ANN, "person", "Ann is known", "main")
    assert book.graph.entity("globex").entity_type == "bigcompany"
    assert (fact.relation_type, fact.fact, fact.episodes) == ("WORKS_AT", EDGE["fact"], (EPISODE,))
    assert (fact.source_name, fact.target_name, dict(fact.attributes)) == ("Ann", "Acme", {"role": "engineer"})
    told = fact.to_dict()
    assert (told["valid_from"], told["valid_to"], told["expired_at"]) == ("2025-05-01T00:00:00Z", None, None)
    told = old.to_dict()
    assert (told["valid_to"], told["expired_at"]) == ("2025-05-01T00:00:00Z", "2026-01-29T12:00:00Z")
    [episode] = book.graph.episodes()
    assert episode.to_dict()["reference_time"] == "2026-01-28T08:30:00Z"
    assert [each.uuid for each in book.graph.search_edges("where Ann works", valid_at="2022-01-01")] == [OLD]
    assert [each.uuid for each in book.graph.search_edges("where Ann works")] == [FACT]
    assert book._runtime.store.check() == []


def test_what_graphiti_held_goes_out_as_it_came(book: Engine, tmp_path: Path) -> None:
    """Whoever moves here can move back: names and times are theirs, and ours stand beside them."""
    book.graph.import_graphiti(written(tmp_path / "theirs.json", THEIRS))
    book.graph.export_graphiti(tmp_path / "back.json")
    back = json.loads((tmp_path / "back.json").read_text(encoding="utf-8"))
    assert back["format"] == "graphiti"
    for name in ("entity_nodes", "entity_edges"):
        theirs = {each["uuid"]: each for each in THEIRS[name]}
        for record in back[name]:
            given = {key: value for key, value in theirs[record["uuid"]].items() if key != "name_embedding"}
            given["episodes"] = [EPISODE] if given.get("episodes") else given.get("episodes")
            assert {"episodes": None, **record} == given
    [episode] = back["episodic_nodes"]
    assert episode == {**THEIRS["episodic_nodes"][0], "valid_at": "2026-01-28T08:30:00Z"}


def test_deleting_an_episode_of_theirs_takes_what_only_it_said(book: Engine, tmp_path: Path) -> None:
    book.graph.import_graphiti(written(tmp_path / "theirs.json", THEIRS))
    gone = book.graph.delete_episode(EPISODE)
    assert (gone.relations, gone.entities) == ((FACT,), (ACME,))
    assert book.graph.relation(OLD).to_dict()["valid_to"] == "2025-05-01T00:00:00Z"
    assert book._runtime.store.check() == []


def test_trial_writes_nothing(book: Engine, tmp_path: Path) -> None:
    taken = book.graph.import_graphiti(written(tmp_path / "theirs.json", THEIRS), dry_run=True)
    assert (taken.is_dry_run, taken.episodes, taken.relations) == (True, 1, 2)
    assert book.graph.counts().episodes == book.graph.counts().entities == 0


def changed(place: str, index: int, **values: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(THEIRS))
    document[place][index].update(values)
    return document


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (changed("entity_nodes", 1, uuid=None), "entity_nodes[1].uuid"),
        (changed("entity_nodes", 1, uuid=ANN), "entity_nodes[1].uuid"),
        (changed("entity_nodes", 2, name=7), "entity_nodes[2].name"),
        (changed("entity_nodes", 0, labels="Person"), "entity_nodes[0].labels"),
        (changed("entity_nodes", 0, attributes=[]), "entity_nodes[0].attributes"),
        (changed("entity_edges", 1, valid_at="yesterday"), "entity_edges[1].valid_at"),
        (changed("entity_edges", 0, target_node_uuid="nobody"), "entity_edges[0].target_node_uuid"),
        (changed("episodic_nodes", 0, created_at=None, valid_at=None), "episodic_nodes[0].created_at"),
        (changed("episodic_nodes", 0, content="x" * 1_048_577), "episodic_nodes[0].content"),
        (changed("episodic_edges", 1, target_node_uuid=""), "episodic_edges[1].target_node_uuid"),
        ({"entity_nodes": {}}, "entity_nodes"),
        ({"entity_edges": [[]]}, "entity_edges[0]"),
        ({"knots": []}, ""),
        ([], ""),
    ],
)
def test_what_is_wrong_is_told_with_its_place(book: Engine, tmp_path: Path, document: object, path: str) -> None:
    """And nothing of the rest is taken in."""
    with pytest.raises(ConfigError) as caught:
        book.graph.import_graphiti(written(tmp_path / "wrong.json", document))
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{tmp_path / 'wrong.json'}: ")
    assert book.graph.counts().entities == 0


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{\n"entity_nodes": [\n  {"uuid": }]}', "line 3 column 12"),
        (b'{"entity_nodes":\n\n[\xff]}', "can't decode byte 0xff"),
        (b'{"entity_nodes": [NaN]}', "NaN is not a number"),
        (b"[" * 100_000, "recursion"),
        (b"", "line 1 column 1"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(book: Engine, tmp_path: Path, data: bytes, told: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=told):
        book.graph.import_graphiti(file)


def test_secrets_of_another_graph_stay_out(book: Engine, tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    document = changed("entity_edges", 0, fact=f"Ann uses {key}", attributes={"token": {"is": [key]}})
    document["episodic_nodes"][0]["content"] = f"my key is {key}"
    book.graph.import_graphiti(written(tmp_path / "theirs.json", document))
    assert key not in json.dumps([each.to_dict() for each in book.graph.search_edges("Ann uses")])
    assert key not in book.graph.episode(EPISODE).content
    assert key.encode() not in (book.directory / "store.db").read_bytes()


def test_fact_that_ends_before_it_begins_was_never_true(book: Engine, tmp_path: Path) -> None:
    """A model that reads for Graphiti mixes dates up; such a fact holds at no time, whatever is said after it."""
    backwards = changed("entity_edges", 0, valid_at="2026-05-01T00:00:00Z", invalid_at="2020-01-01T00:00:00Z")
    book.graph.import_graphiti(written(tmp_path / "theirs.json", backwards))
    for _ in range(2):
        fact = book.graph.relation(FACT)
        assert fact.retracted
        assert FACT not in [each.uuid for each in book.graph.neighbourhood("Ann", 1, valid_at="2023-01-01").relations]
        assert EDGE["fact"] not in book.graph.show("Ann", form="graphml", include_past=True).drawing
        book.graph.add_triplet("Ann", "WORKS_FOR", "Initech", valid_from="2026-06-01")
    book.graph.export_graphiti(tmp_path / "again.json")
    [edge] = [
        each for each in json.loads((tmp_path / "again.json").read_text())["entity_edges"] if each["uuid"] == FACT
    ]
    assert (edge["valid_at"], edge["invalid_at"]) == ("2026-05-01T00:00:00Z", "2020-01-01T00:00:00Z"), "as it came"


def test_fact_about_one_thing_and_itself_is_drawn_and_walked_once(book: Engine, tmp_path: Path) -> None:
    """Graphiti may hold one; none is made here."""
    own = changed("entity_edges", 0, target_node_uuid=ANN, fact="Ann knows Ann")
    book.graph.import_graphiti(written(tmp_path / "theirs.json", own))
    near = book.graph.neighbourhood("Ann", 2)
    assert [each.fact for each in near.relations] == ["Ann knows Ann"]
    assert len(near.entities) == 1
    assert book.graph.path("Ann", "Ann").relations == ()
    assert [entry.what for entry in book.graph.timeline("Ann").entries if entry.relation.uuid == FACT] == ["began"]


def test_file_that_is_there_is_not_written_over(book: Engine, tmp_path: Path) -> None:
    there = written(tmp_path / "there.json", {})
    with pytest.raises(StoreError, match="exists already"):
        book.graph.export_graphiti(there)
    with pytest.raises(NotFoundError, match="there is nothing"):
        book.graph.import_graphiti(tmp_path / "nowhere.json")
    with pytest.raises(UsageError, match="is a directory; name a file"):
        book.graph.import_graphiti(tmp_path)


def test_export_holds_only_what_graphiti_s_own_models_and_databases_take(book: Engine, tmp_path: Path) -> None:
    """An entity without labels is refused by graphiti-core, an object among attributes by its databases."""
    book.graph.add_triplet("the kettle", "USES", "the teapot")
    odd = changed("entity_nodes", 0, attributes={"depth": {"is": [1]}, "sizes": [1, 2]})
    book.graph.import_graphiti(written(tmp_path / "theirs.json", odd))
    book.graph.export_graphiti(tmp_path / "ours.json")
    document = json.loads((tmp_path / "ours.json").read_text())
    for node in document["entity_nodes"]:
        assert isinstance(node["labels"], list) and "Entity" in node["labels"], node["name"]
    values = [
        value
        for name in ("entity_nodes", "entity_edges")
        for record in document[name]
        for value in record["attributes"].values()
    ]
    scalars = [each for value in values for each in (value if isinstance(value, list) else [value])]
    assert all(isinstance(each, str | int | float | bool) for each in scalars)
    with commonplace.open(tmp_path / "again") as again:
        again.graph.import_graphiti(tmp_path / "ours.json")
        assert exported(again) == document
