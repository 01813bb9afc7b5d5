"""Models and keys that orgs and users bring, over HTTP: kept for their owner, told to nobody."""

from __future__ import annotations

import pytest

from holdfast.llm.sealing import MASTER, new_master

KEY = "sk-canary-Over-Http-31"
GIVEN = {"provider": "openai", "model": "gpt-5-mini", "key": KEY}
MINE, OURS = "/v1/users/ana/provider-keys", "/v1/provider-keys"


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv(MASTER, new_master().reveal())


def test_a_user_sets_sees_and_removes_a_key_of_their_own(ask):
    ana = ask("user", user="ana")
    made = ana.put(MINE, json=GIVEN)
    assert made.status_code == 200
    listed = ana.get(MINE).json()
    assert listed == [made.json()]
    assert (listed[0]["provider"], listed[0]["base_url"], listed[0]["in_use"]) == (
        "openai",
        "https://api.openai.com/v1",
        True,
    )
    assert KEY not in made.text + ana.get(MINE).text + ana.get("/v1/users/ana/export").text
    kept = ana.put(MINE, json={"provider": "openai", "model": "gpt-5"}).json()
    assert (kept["id"], kept["model"]) == (listed[0]["id"], "gpt-5")
    assert ana.delete(f"{MINE}/{kept['id']}").status_code == 204
    assert ana.delete(f"{MINE}/{kept['id']}").status_code == 404
    assert ana.get(MINE).json() == []


def test_the_orgs_key_is_the_operators_to_set(ask, memory):
    operator = ask("operator")
    assert operator.put(OURS, json=GIVEN, headers={"X-Holdfast-Org": "acme"}).json()["org"] == "acme"
    assert operator.get(OURS).json() == []
    assert memory.admin.provider_keys.upstream(org="acme", user="ana").whose == "org"
    assert ask("app", org="acme").put(OURS, json=GIVEN).status_code == 403


def test_a_key_of_one_is_not_anothers(ask):
    made = ask("user", user="ana").put(MINE, json=GIVEN).json()
    for other in (ask("user", user="bob"), ask("subject", user="ana", subject="rex"), ask("app", org="other")):
        answer = other.delete(f"{MINE}/{made['id']}")
        assert answer.status_code in (403, 404)
    elsewhere = ask("app", org="other")
    assert elsewhere.get(MINE).json() == []
    assert len(ask("app").get(MINE).json()) == 1


def test_a_key_for_one_assistant_does_not_choose_who_reads_for_all(ask):
    bound = ask("app", bot="support")
    assert bound.get(f"{MINE}?bot=support").status_code == 200
    assert bound.put(f"{MINE}?bot=support", json=GIVEN).status_code == 403
    assert bound.delete(f"{MINE}/pk_1?bot=support").status_code == 403


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"base_url": "http://169.254.169.254/latest/meta-data"}, "endpoint-refused"),
        ({"base_url": "https://localhost:11434/v1"}, "endpoint-refused"),
        ({"base_url": "https://[::ffff:127.0.0.1]/v1"}, "endpoint-refused"),
        ({"base_url": "file:///etc/passwd"}, "endpoint-refused"),
        ({"provider": "mistral"}, "bad-input"),
        ({"model": "a b"}, "bad-input"),
        ({"key": "two\r\nlines"}, "bad-input"),
        ({"key": "k" * 5_000}, "bad-input"),
        ({"keys": KEY}, "bad-input"),
        ({"key": [KEY]}, "bad-input"),
    ],
)
def test_what_cannot_be_used_is_refused_without_repeating_it(ask, body, code):
    ana = ask("user", user="ana")
    answer = ana.put(MINE, json=GIVEN | body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert KEY not in answer.text
    assert ana.get(MINE).json() == []


def test_without_a_master_key_nothing_is_kept(ask, monkeypatch):
    monkeypatch.delenv(MASTER)
    answer = ask("user", user="ana").put(MINE, json=GIVEN)
    assert (answer.status_code, answer.json()["code"]) == (409, "vault-locked")
    assert MASTER in answer.json()["hint"]


def test_another_address_wants_the_key_again(ask):
    ana = ask("user", user="ana")
    ana.put(MINE, json=GIVEN)
    moved = {"provider": "openai", "model": "gpt-5", "base_url": "https://elsewhere.example/v1"}
    assert ana.put(MINE, json=moved).status_code == 422
    assert ana.put(MINE, json=moved | {"key": "other"}).json()["base_url"] == "https://elsewhere.example/v1"
