"""What a transaction knows of a graph without reading it again."""

from __future__ import annotations

import random

import pytest
from tests.contract.graphs import entity
from tests.contract.stores import passage

from commonplace.store.graph import GraphReading
from commonplace.store.store import Store
from commonplace.types.graph import Alias

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(12))
def test_what_was_read_ahead_is_what_is_there(seed: int) -> None:
    """Entities come, go, come back and change their names, in the transaction that has asked who bears which."""
    draw, store = random.Random(seed), Store.in_memory()
    for part in range(2):
        with store.change_memories("n") as under_way:
            graph = under_way.graph
            for number in range(40):
                act, id_, normal = draw.randrange(7), f"e{draw.randrange(5)}", draw.choice(NAMES)
                if act == 0:
                    graph.expect(draw.sample(NAMES, 2), limit=draw.choice([None, 1, 2]))
                elif act == 1:
                    new = graph.make_id(f"{part} {number}", "entity")
                    graph.put(Alias(new, normal, normal, 99.0))
                    graph.put_entity(entity(new), [passage("x")])
                elif act == 2:
                    graph.put_entity(entity(id_, summary=f"{number}", expired_at=draw.choice([None, 99.0])))
                elif act == 3:
                    graph.put(Alias(id_, normal, normal, 99.0))
                elif act == 4:
                    graph.drop(Alias, entity=id_, normal=normal)
                elif act == 5 and not draw.randrange(3):
                    graph.erase_entities([id_])
                limit = draw.choice([None, 1, 2])
                for each in NAMES:
                    read = GraphReading.entities_by_name(graph, [each], limit=limit)
                    assert graph.entities_by_name([each], limit=limit) == read
                assert graph.entities([id_]) == GraphReading.entities(graph, [id_])
    store.close()
