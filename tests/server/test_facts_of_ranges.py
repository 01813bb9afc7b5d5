"""Facts over HTTP carry the messages that they rest on, and are asked for by them."""

from __future__ import annotations

from datetime import UTC, datetime

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


def test_memories_are_posted_as_a_list_in_the_shape_in_which_they_are_given(memory: Memory, ask: Ask) -> None:
    client = ask("app")
    rows = [
        {"content": "Deploys on Kubernetes", "category": "context", "confidence": 0.9},
        {"content": "Might be interested in Rust", "category": "preference", "confidence": 0.4},
    ]
    head = {"Idempotency-Key": "once"}
    made = client.post(f"{HOME}/facts", json=rows, headers=head)
    again = client.post(f"{HOME}/facts", json=rows, headers=head)

    assert made.status_code == 201
    assert [one["op"] for one in made.json()] == ["new", "rejected"]
    assert [one["op"] for one in again.json()] == ["confirmed", "rejected"]
    assert client.post(f"{HOME}/facts", json={"content": "Likes tea.", "category": "preference"}).status_code == 201
    given = client.get(f"{HOME}/export", params={"format": "memories"}).json()
    assert {(one["content"], one["category"]) for one in given} == {
        ("Deploys on Kubernetes", "context"),
        ("Likes tea.", "preference"),
    }
    assert client.post("/v1/users/twin/facts", json=given).status_code == 201
    labels = client.get("/v1/users/twin/facts", params={"category": "context"}).json()["data"]
    assert [(one["text"], one["label"]) for one in labels] == [("Deploys on Kubernetes", "context")]


def test_a_memory_is_as_old_as_the_one_it_was_exported_from(memory: Memory, ask: Ask) -> None:
    client, user = ask("app"), memory.user("ana")
    user.remember("I live in Porto.")
    older = {"content": "Lives in Lisbon", "category": "identity", "source": {"extractedAt": "2024-03-01T10:00:00Z"}}

    assert client.post(f"{HOME}/facts", json=[older]).status_code == 201
    assert [fact.text for fact in user.facts()] == ["Lives in Porto."]
    [given] = client.get(f"{HOME}/export", params={"format": "memories"}).json()
    assert given["source"]["conversationId"] is None
    user.remember("Likes tea", category="preference", at=datetime(2025, 5, 1, tzinfo=UTC))
    kept = client.get(f"{HOME}/export", params={"format": "memories"}).json()
    assert "2025-05-01T00:00:00Z" in {one["source"]["extractedAt"] for one in kept}


def test_a_mistake_in_a_list_is_named_by_its_place(ask: Ask) -> None:
    refused = ask("app").post(
        f"{HOME}/facts", json=[{"content": "Likes tea"}, {"content": "Likes jazz", "confidence": "high"}]
    )

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("body.1.confidence: ")


def test_of_a_list_with_a_mistake_nothing_is_stored(memory: Memory, ask: Ask) -> None:
    rows = [{"content": "Likes tea", "category": "preference"}, {"content": "Likes jazz", "category": "music"}]
    refused = ask("app").post(f"{HOME}/facts", json=rows)

    assert refused.status_code == 422
    assert "'music' is none" in refused.text
    assert memory.user("ana").facts() == []


def test_a_list_that_fails_at_a_fact_names_it_and_goes_on_from_there(memory: Memory, ask: Ask) -> None:
    memory.conversation("a", user="ana").record("We met at Meko.", "Lovely.")
    rows = [
        {"content": "Likes tea", "category": "preference"},
        {"text": "They met.", "conversation": "a", "start_seq": 50, "end_seq": 60},
        {"content": "Runs PostgreSQL 15", "category": "technical"},
    ]
    head = {"Idempotency-Key": "once"}
    refused = ask("app").post(f"{HOME}/facts", json=rows, headers=head)

    assert refused.status_code == 404
    assert "fact 2 of 3" in refused.text
    assert [fact.text for fact in memory.user("ana").facts()] == ["Likes tea."]
    rows[1] |= {"start_seq": 1, "end_seq": 2}
    made = ask("app").post(f"{HOME}/facts", json=rows, headers=head)
    assert [one["op"] for one in made.json()] == ["confirmed", "new", "new"]
    assert len(memory.user("ana").facts()) == 3


def test_facts_of_a_trip_replace_nothing_of_another_over_http(memory: Memory, ask: Ask) -> None:
    client = ask("app")
    for trip, said in (
        ("oslo", "Oslo trip: budget of about $1200, just me."),
        ("lisbon", "For Lisbon we can spend 2500 euros at most."),
        ("oslo", "My budget is $1500 now."),
    ):
        body = {"messages": [{"role": "user", "content": said}]}
        client.post(f"{HOME}/conversations/{trip}/messages", json=body, params={"own_facts": True}).raise_for_status()

    found = client.get(f"{HOME}/facts", params={"category": "budget"}).json()["data"]
    prompt = client.post(f"{HOME}/conversations/oslo/context", json={"query": "What can I spend?"}).json()
    shown = str([message["content"] for message in prompt["messages"]])  # ids and times may hold any digits

    assert sorted((one["only_in"], one["value"]) for one in found) == [("lisbon", "2500"), ("oslo", "1500")]
    assert "1500" in shown
    assert "2500" not in shown
