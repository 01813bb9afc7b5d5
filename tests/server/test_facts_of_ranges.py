"""Facts over HTTP carry the messages that they rest on, and are asked for by them."""

from __future__ import annotations

from holdfast import Memory

from .conftest import Ask

HOME = "/v1/users/ana"


def test_facts_carry_their_range_and_are_filtered_by_it(memory: Memory, ask: Ask) -> None:
    client = ask("app")
    for name, texts in {"a": ["I live in Lisbon.", "I'm allergic to peanuts."], "b": ["I work as a nurse."]}.items():
        chat = memory.conversation(name, user="ana")
        for text in texts:
            chat.record(text, "Noted.")

    def values(**query: object) -> list[tuple[str, str, int, int]]:
        found = client.get(f"{HOME}/facts", params=query).json()["data"]  # type: ignore[arg-type]
        return [(f["value"], f["conversation"], f["start_seq"], f["end_seq"]) for f in found]

    assert values(conversation="a") == [("peanuts", "a", 3, 3), ("Lisbon", "a", 1, 1)]
    assert values(conversation="a", start_seq=2) == [("peanuts", "a", 3, 3)]
    assert {value for value, *_ in values(conversation=["a", "b"])} == {"peanuts", "Lisbon", "nurse"}
    assert client.get(f"{HOME}/facts", params={"start_seq": 1}).status_code == 422


def test_an_episode_is_added_for_a_range_and_its_importance_set(memory: Memory, ask: Ask) -> None:
    client = ask("app")
    memory.conversation("a", user="ana").record("We met at Meko, over tteokbokki.", "Lovely.")
    body = {"text": "First dinner at Meko.", "conversation": "a", "start_seq": 1, "end_seq": 2, "importance": 0.8}
    fact = client.post(f"{HOME}/facts", json=body).json()["fact"]

    assert (fact["kind"], fact["start_seq"], fact["end_seq"], fact["importance"]) == ("episode", 1, 2, 0.8)
    assert client.patch(f"{HOME}/facts/{fact['id']}", json={"importance": 0.3}).json()["fact"]["importance"] == 0.3
    listed = client.get(f"{HOME}/conversations/a/episodes", params={"start_seq": 1, "end_seq": 1}).json()["data"]
    assert [one["id"] for one in listed] == [fact["id"]]
    assert client.get(f"{HOME}/conversations/a/episodes", params={"start_seq": 3}).json()["data"] == []


def test_a_context_has_both_kinds_of_summaries_and_no_character_when_asked_so(memory: Memory, ask: Ask) -> None:
    client, path = ask("app"), f"{HOME}/conversations/a/context"
    memory.conversation("a", user="ana").record("I live in Lisbon.", "Noted.")
    both = {"name": "layered", "side_by_side": True, "character": False}
    sections = client.post(path, json={"strategy": both}).json()["sections"]

    assert [section["name"] for section in sections][:2] == ["meta_summaries", "chunk_summaries"]
    assert client.post(path, json={"strategy": {"name": "window", "side_by_side": True}}).status_code == 422
