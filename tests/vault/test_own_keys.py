"""Keys that users and orgs bring: set, used for them alone, never given back."""

from __future__ import annotations

from datetime import UTC, datetime

import apsw
import pytest

from holdfast import Budget, Config, Memory
from holdfast.errors import BadInput, ConfigError, EndpointRefused, NotFound, VaultLocked
from holdfast.llm.sealing import MASTER
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ModelServer, ScriptedModel, ServerAnswer
from holdfast.types import Secret

from .conftest import KEY, MASTER_KEY, OTHER_MASTER_KEY

ALLOWED = Config(allow_private_endpoints=("127.0.0.1",))
TALK = ["I live in Lisbon.", "I work as a nurse.", "I have a dog.", "I like tea.", "I play chess."]


def talk(memory, user="ana", org="default"):
    chat = memory.conversation("c", user=user, org=org)
    for text in TALK:
        chat.record(text, "Noted.")
    chat.end()
    return memory.digest()


def models_used(memory, user, org="default"):
    return {row.model for row in memory.usage(by=["model"], user=user, org=org)}


def test_a_key_is_set_listed_without_it_and_removed(memory):
    made = memory.admin.provider_keys.set("openai", "gpt-5-mini", KEY, user="ana")
    assert memory.admin.provider_keys.list(user="ana") == [made]
    assert (made.name, made.base_url, made.in_use, made.opens) == (
        "openai:gpt-5-mini",
        "https://api.openai.com/v1",
        True,
        True,
    )
    assert KEY not in repr(made)
    assert made.fingerprint not in KEY
    assert (
        memory.admin.provider_keys.list()
        == memory.admin.provider_keys.list(user="bob")
        == memory.admin.provider_keys.list(user="ana", org="other")
        == []
    )
    for whose in ({"user": "bob"}, {"user": "ana", "org": "other"}, {}):
        with pytest.raises(NotFound):
            memory.admin.provider_keys.remove(made.id, **whose)
    memory.admin.provider_keys.remove(made.id, user="ana")
    assert memory.admin.provider_keys.list(user="ana") == []
    assert memory.admin.provider_keys.upstream(user="ana") is None


def test_the_users_own_comes_before_the_orgs_and_the_last_one_set_before_others(clocked):
    memory, clock = clocked
    memory.admin.provider_keys.set("anthropic", "claude", "k-org", org="acme")
    assert memory.admin.provider_keys.upstream(org="acme", user="ana").whose == "org"
    memory.admin.provider_keys.set("openai", "one", "k-1", org="acme", user="ana")
    clock.advance(seconds=1)
    memory.admin.provider_keys.set("google", "two", "k-2", org="acme", user="ana")
    found = memory.admin.provider_keys.upstream(org="acme", user="ana")
    assert (found.provider, found.key.reveal(), found.whose) == ("google", "k-2", "user")
    assert [key.in_use for key in memory.admin.provider_keys.list(org="acme", user="ana")] == [True, False]
    clock.advance(seconds=1)
    memory.admin.provider_keys.set("openai", "three", "k-3", org="acme", user="ana")
    assert [key.model for key in memory.admin.provider_keys.list(org="acme", user="ana")] == ["three", "two"]
    assert memory.admin.provider_keys.upstream(org="acme", user="bob").key.reveal() == "k-org"
    assert memory.admin.provider_keys.upstream(org="other", user="ana") is None
    assert memory.admin.provider_keys.upstream(org="acme").provider == "anthropic"
    assert "k-3" not in repr(found)


@pytest.fixture
def clocked():
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    with Memory(embedder=None, clock=clock, config=ALLOWED) as memory:
        yield memory, clock


def test_a_key_belongs_to_the_address_that_it_was_set_for(memory):
    memory.admin.provider_keys.set("openai", "gpt-5", KEY, user="ana")
    assert memory.admin.provider_keys.set("openai", "gpt-5-mini", user="ana").model == "gpt-5-mini"
    assert memory.admin.provider_keys.upstream(user="ana").key.reveal() == KEY
    with pytest.raises(BadInput, match="belongs to the address"):
        memory.admin.provider_keys.set("openai", "gpt-5", base_url="https://gateway.example/v1", user="ana")
    with pytest.raises(BadInput, match="no key yet"):
        memory.admin.provider_keys.set("anthropic", "claude", user="ana")
    moved = memory.admin.provider_keys.set("openai", "gpt-5", "other", "https://gateway.example/v1", user="ana")
    assert moved.base_url == "https://gateway.example/v1"
    assert memory.admin.provider_keys.upstream(user="ana").key == Secret("other")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("mistral", "m", KEY), BadInput),
        (("openai", "", KEY), BadInput),
        (("openai", "a b", KEY), BadInput),
        (("openai", "m\r\nX: y", KEY), BadInput),
        (("openai", "m", ""), BadInput),
        (("openai", "m", "two words"), BadInput),
        (("openai", "m", "k\r\nX-Injected: 1"), BadInput),
        (("openai", "m", "k" * 5_000), BadInput),
        (("openai", "m", "clé"), BadInput),
        (("openai", "m", KEY, "http://api.openai.com/v1"), EndpointRefused),
        (("openai", "m", KEY, "https://169.254.169.254/v1"), EndpointRefused),
        (("openai", "m", KEY, "https://[::1]/v1"), EndpointRefused),
        (("ollama", "m", "", "192.168.1.5:11434"), EndpointRefused),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_stored(memory, given, error):
    with pytest.raises(error) as caught:
        memory.admin.provider_keys.set(*given, user="ana")
    assert memory.admin.provider_keys.list(user="ana") == []
    assert KEY not in str(caught.value)


def test_without_a_master_key_nothing_is_stored_and_what_is_there_is_told_but_not_opened(memory, monkeypatch):
    memory.admin.provider_keys.set("openai", "gpt-5", KEY, user="ana")
    for value in ("", OTHER_MASTER_KEY):
        monkeypatch.setenv(MASTER, value)
        assert [key.opens for key in memory.admin.provider_keys.list(user="ana")] == [False]
        with pytest.raises(VaultLocked):
            memory.admin.provider_keys.upstream(user="ana")
    monkeypatch.setenv(MASTER, "")
    with pytest.raises(VaultLocked):
        memory.admin.provider_keys.set("openai", "gpt-5", KEY, user="bob")
    assert memory.admin.provider_keys.list(user="bob") == []


def test_the_master_key_is_replaced_by_another(tmp_path, monkeypatch):
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        for n in range(120):
            memory.admin.provider_keys.set("openai", "m", f"sk-{n}", user=f"user {n}")
        assert memory.admin.provider_keys.rotate() == 0
        assert memory.admin.provider_keys.rotate(OTHER_MASTER_KEY) == 120
        assert memory.admin.provider_keys.upstream(user="user 7").key.reveal() == "sk-7"
        memory.admin.provider_keys.set("openai", "m", "sk-new", user="new")
    with Memory(path, embedder=None) as memory:
        with pytest.raises(VaultLocked):
            memory.admin.provider_keys.upstream(user="user 7")
        monkeypatch.setenv(MASTER, OTHER_MASTER_KEY)
        assert memory.admin.provider_keys.upstream(user="user 7").key.reveal() == "sk-7"
        monkeypatch.setenv(MASTER, f"{MASTER_KEY} {OTHER_MASTER_KEY}")
        assert memory.admin.provider_keys.rotate() == 121
        monkeypatch.setenv(MASTER, MASTER_KEY)
    with Memory(path, embedder=None) as memory:
        assert memory.admin.provider_keys.upstream(user="new").key.reveal() == "sk-new"


def test_a_row_that_was_moved_to_somebody_else_does_not_open(tmp_path):
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        memory.admin.provider_keys.set("openai", "m", KEY, user="ana")
    for damage in (
        "user_id = 'eve'",
        "org = 'other', user_id = 'ana'",
        "base_url = 'https://evil.example/v1', org = 'default'",
    ):
        with apsw.Connection(str(path)) as outside:
            outside.execute(f"UPDATE provider_key SET {damage}")
        outside.close()
        with Memory(path, embedder=None) as memory:
            where = (
                {"user": "eve"}
                if "eve" in damage
                else {"user": "ana", "org": "other" if "'other'" in damage else "default"}
            )
            assert memory.admin.provider_keys.list(**where) != []
            with pytest.raises(VaultLocked, match="changed or moved"):
                memory.admin.provider_keys.upstream(**where)


def test_an_erased_user_has_no_key_left_and_the_export_never_had_one(memory):
    talk(memory)
    made = memory.admin.provider_keys.set("openai", "m", KEY, user="ana")
    memory.admin.provider_keys.set("openai", "m", KEY)
    user = memory.user("ana")
    told = repr(user.export())
    receipt = user.erase()
    assert receipt.rows["provider keys"] == 1
    assert memory.admin.provider_keys.list(user="ana") == []
    assert len(memory.admin.provider_keys.list()) == 1
    assert KEY not in told
    assert made.id not in told


def test_a_users_own_model_reads_for_them_and_for_nobody_else(memory):
    """The memory has no model; ana brought one, bob did not."""
    with ModelServer() as server:
        memory.admin.provider_keys.set("openai", "own", KEY, server.url, user="ana")
        talk(memory)
        talk(memory, "bob")
    assert server.asked
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert {asked.body["model"] for asked in server.asked} == {"own"}
    assert models_used(memory, "ana") == {"openai:own"}
    assert models_used(memory, "bob") == set()


def test_an_edited_message_is_left_to_the_users_own_model(memory):
    memory.admin.provider_keys.set("openai", "own", KEY, base_url="http://127.0.0.1:1/v1", user="ana")
    for user in ("ana", "bob"):
        chat = memory.conversation("c", user=user)
        chat.append({"role": "user", "content": "I live in Lisbon."})
        chat.edit(1, "I live in Porto. I am on dialysis.")

    assert [fact.text for fact in memory.user("ana").facts()] == ["Lives in Porto."]
    assert sorted(fact.text for fact in memory.user("bob").facts()) == ["Is on dialysis.", "Lives in Porto."]


def test_each_is_asked_at_the_model_that_is_theirs():
    """The user's own, the org's, the memory's: at once in one memory, each on record under its name."""
    usual = ScriptedModel()
    with (
        ModelServer() as own,
        ModelServer() as orgs,
        Memory(llm=usual, embedder=HashEmbedder(), config=ALLOWED) as memory,
    ):
        memory.admin.provider_keys.set("openai", "mine", "k-ana", own.url, org="acme", user="ana")
        memory.admin.provider_keys.set("openai", "ours", "k-acme", orgs.url, org="acme")
        for user, org in (("ana", "acme"), ("bob", "acme"), ("cy", "default")):
            talk(memory, user, org)
        assert models_used(memory, "ana", "acme") == {"openai:mine"}
        assert models_used(memory, "bob", "acme") == {"openai:ours"}
        assert models_used(memory, "cy") == {usual.name}
    assert {asked.headers["authorization"] for asked in own.asked} == {"Bearer k-ana"}
    assert {asked.headers["authorization"] for asked in orgs.asked} == {"Bearer k-acme"}


def test_a_model_counts_from_the_moment_it_is_set_and_no_longer_when_it_is_gone(memory):
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Lisbon.", "Noted.")
    memory.digest()
    with ModelServer() as server:
        made = memory.admin.provider_keys.set("openai", "own", KEY, server.url, user="ana")
        assert memory.user("ana").status().state == "active"
        talk(memory)
        asked = len(server.asked)
        assert asked
        chat.rebuild("facts")
        assert len(server.asked) > asked
        asked = len(server.asked)
        memory.admin.provider_keys.remove(made.id, user="ana")
        chat.record("I have moved to Porto.", "Noted.")
        chat.end()
        memory.digest()
        assert len(server.asked) == asked
    assert memory.doctor().ok


def test_old_conversations_are_brought_up_to_the_users_own_model(memory):
    talk(memory)
    talk(memory, "bob")
    with ModelServer(lambda asked: "NONE") as server:
        memory.admin.provider_keys.set("openai", "own", KEY, server.url, user="ana")
        report = memory.backfill(delay_ms=0, layers=["facts"])
        assert report.created >= 1
        assert len(server.asked) == report.calls >= 1
    assert models_used(memory, "bob") == set()


def test_a_key_that_cannot_be_opened_is_not_replaced_by_somebody_elses(tmp_path, monkeypatch):
    """What was to go to one provider does not go to the operator's: it waits, and says for what."""
    usual = ScriptedModel()
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        memory.admin.provider_keys.set("openai", "own", KEY, user="ana")
    monkeypatch.setenv(MASTER, OTHER_MASTER_KEY)
    with Memory(path, llm=usual, embedder=None) as memory:
        talk(memory)
        assert not usual.asked
        waiting = memory.jobs("waiting")
        assert waiting
        assert all("master key" in job.reason for job in waiting)
        assert memory.user("ana").facts()  # what the rules read is there


def test_a_fault_of_one_users_key_stops_nobody_else():
    """A refused key closes the way for its owner alone."""
    usual = ScriptedModel()
    with (
        ModelServer(lambda asked: ServerAnswer(status=401)) as server,
        Memory(llm=usual, embedder=None, config=ALLOWED) as memory,
    ):
        memory.admin.provider_keys.set("openai", "own", KEY, server.url, user="ana")
        talk(memory)
        talk(memory, "bob")
        assert {job.user for job in memory.jobs("waiting")} == {"ana"}
        assert len(server.asked) == 1
        assert models_used(memory, "bob") == {usual.name}


def test_an_address_that_turns_private_is_not_asked_and_the_job_says_so(monkeypatch):
    with ModelServer() as server, Memory(embedder=None, config=ALLOWED) as memory:
        memory.admin.provider_keys.set(
            "openai", "own", KEY, server.url.replace("http://127.0.0.1", "https://evil.example"), user="ana"
        )
        monkeypatch.setattr("holdfast.llm.guard.resolved", lambda host, port: ["::1"])
        talk(memory)
        assert server.asked == []
        assert all("private address" in job.reason for job in memory.jobs("waiting"))
        assert memory.jobs("waiting")


def test_an_address_that_is_allowed_no_longer_is_not_asked(tmp_path):
    path = tmp_path / "memory.db"
    with ModelServer() as server:
        with Memory(path, embedder=None, config=ALLOWED) as memory:
            memory.admin.provider_keys.set("openai", "own", KEY, server.url, user="ana")
        with Memory(path, embedder=None) as memory:
            talk(memory)
            with pytest.raises(EndpointRefused):
                memory.admin.provider_keys.upstream(user="ana")
        assert server.asked == []


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_nothing_of_the_operators_is_sent_along(provider, monkeypatch):
    """Keys, headers and addresses in the operator's environment stay there, with every provider's own library."""
    canary = "operator-canary-77"
    for variable in (
        "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET",
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT",
    ):  # fmt: skip
        monkeypatch.setenv(variable, canary)
    for variable in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(variable, f"X-Gateway-Token: {canary}\nAuthorization: Bearer {canary}")
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    with ModelServer(lambda asked: ServerAnswer(status=404)) as server, Memory(embedder=None, config=ALLOWED) as memory:
        memory.admin.provider_keys.set(provider, "own", KEY, server.url, user="ana")
        talk(memory)
        assert server.asked
        for asked in server.asked:
            assert canary not in repr(asked.headers)
            assert canary not in asked.path
            assert sum(KEY in value for value in asked.headers.values()) == 1


def test_a_budget_in_dollars_wants_models_with_a_price():
    with Memory(embedder=None, config=Config(budget=Budget(usd_per_day=1))) as memory:
        with pytest.raises(ConfigError, match="price"):
            memory.admin.provider_keys.set("openai", "nobody-knows-it", KEY, user="ana")
        assert memory.admin.provider_keys.set("openai", "gpt-4o-mini", KEY, user="ana").in_use
