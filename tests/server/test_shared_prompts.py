"""Prompts of an org and of its bots over HTTP: for operators, with versions, and never for another org."""

from __future__ import annotations

from holdfast import Memory

from .conftest import Ask

PROMPT = "/v1/prompts/episodes"


def test_operators_set_the_prompts_of_their_org_and_of_its_bots(memory: Memory, ask: Ask) -> None:
    client = ask("operator", org="acme")
    first = client.put(PROMPT, json={"text": "Only journeys."})
    client.put(PROMPT, params={"bot": "tutor"}, json={"text": "Only lessons."})

    assert (first.json()["version"], first.headers["ETag"]) == (1, '"1"')
    assert memory.user("ana", org="acme").prompts.get("episodes") == "Only journeys."
    assert memory.user("ana", org="acme", bot="tutor").prompts.get("episodes") == "Only lessons."
    assert memory.user("ana").prompts.get("episodes") not in ("Only journeys.", "Only lessons.")
    assert client.get(PROMPT).json() == "Only journeys."
    refused = client.put(PROMPT, json={"text": "Only feasts."}, headers={"If-Match": '"7"'})
    assert refused.status_code == 412
    draft = client.post(PROMPT + "/drafts", json={"text": "Only feasts."}).json()
    assert client.get(PROMPT).json() == "Only journeys."
    client.post(PROMPT + "/activate", json={"version": draft["version"]})
    assert client.get(PROMPT).json() == "Only feasts."
    assert [one["text"] for one in client.get(PROMPT + "/versions").json()["data"]] == [
        "Only journeys.",
        "Only feasts.",
        "Only feasts.",
    ]
    assert client.delete(PROMPT).status_code == 200
    assert client.get(PROMPT, params={"bot": "tutor"}).json() == "Only lessons."


def test_others_than_operators_do_not(memory: Memory, ask: Ask) -> None:
    for role, whose in {"app": {}, "user": {"user": "ana"}}.items():
        assert ask(role, **whose).put(PROMPT, json={"text": "Only journeys."}).status_code == 403


def test_a_key_of_one_bot_sets_that_bots_alone(memory: Memory, ask: Ask) -> None:
    ask("operator", bot="tutor").put(PROMPT, json={"text": "Only lessons."})

    assert memory.user("ana", bot="tutor").prompts.get("episodes") == "Only lessons."
    assert memory.user("ana").prompts.get("episodes") != "Only lessons."
