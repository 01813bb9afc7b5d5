"""The access log: every call that answers with words of the memory is in it, and nothing else is."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest
from starlette.testclient import TestClient

from holdfast import Config, Memory
from holdfast.conversation import Conversation
from holdfast.errors import HoldfastError
from holdfast.scope import BACKGROUND, acting
from holdfast.server.app import create_app
from holdfast.testing.fakes import HashEmbedder
from holdfast.user import Prompts, User

BASE = "http://127.0.0.1:7800"

# What a read is called in the log, by the call.  The first of each pair is the call, on Ana's memory.
READS = {
    "User.facts": ("facts", lambda ana, chat: ana.facts()),
    "User.fact": ("facts", lambda ana, chat: ana.fact(FACT["id"])),
    "User.history": ("facts", lambda ana, chat: ana.history("home")),
    "User.search": ("search", lambda ana, chat: ana.search("Porto")),
    "User.explain": ("explain", lambda ana, chat: ana.explain("Porto")),
    "User.profile": ("profile", lambda ana, chat: ana.profile()),
    "User.story": ("story", lambda ana, chat: ana.story()),
    "User.rejected": ("rejected", lambda ana, chat: ana.rejected()),
    "User.rejected_page": ("rejected", lambda ana, chat: ana.rejected_page(limit=5)),
    "User.export": ("export", lambda ana, chat: ana.export()),
    "User.metrics": ("metrics", lambda ana, chat: ana.metrics()),
    "User.forget": ("preview", lambda ana, chat: ana.forget(FACT["id"], dry_run=True)),
    "User.consolidate": ("preview", lambda ana, chat: ana.consolidate(dry_run=True)),
    "User.merge_subjects": ("preview", lambda ana, chat: ana.merge_subjects("rex", "max", dry_run=True)),
    "Conversation.load": ("messages", lambda ana, chat: chat.load()),
    "Conversation.context": ("context", lambda ana, chat: chat.context(note=False)),
    "Conversation.recall": ("search", lambda ana, chat: chat.recall("Porto")),
    "Conversation.summaries": ("summaries", lambda ana, chat: chat.summaries()),
    "Conversation.learned": ("facts", lambda ana, chat: chat.learned()),
    "Conversation.episodes": ("facts", lambda ana, chat: chat.episodes()),
    "Conversation.sent": ("sent", lambda ana, chat: chat.sent()),
    "Conversation.rebuild": ("preview", lambda ana, chat: chat.rebuild("facts", dry_run=True)),
    "Prompts.preview": ("preview", lambda ana, chat: ana.prompts.preview("chunk_summary", dry_run=True)),
}
FACT = {"id": ""}
SILENT = {
    "User": """allow audit clear conversations correct erase events import_ last_event never_remember never_true opt_in
        opt_out overview pause prompts prune remember restore resume review status subject subjects usage""",
    "Conversation": """append clear edit end forget id rate rebuilds record record_usage reply restore state""",
    "Prompts": "activate draft get reset set versions",
}


@pytest.fixture
def memory(tmp_path):
    """Ana's memory: a fact, a summary, a question asked again, two subjects; every read is logged."""
    config = Config(read_log_share=1.0, chunk_messages=10, chunk_tokens=1)
    with Memory(tmp_path / "m.db", config=config, embedder=HashEmbedder()) as opened:
        ana = opened.user("ana")
        ana.subject("rex"), ana.subject("max")
        chat = opened.conversation("c", user="ana")
        chat.record("I live in Porto.", "Where do you live?")
        for number in range(6):
            chat.record(f"The garden was green on day {number}.", "Lovely.")
        chat.end()
        opened.digest()
        with acting(BACKGROUND):
            FACT["id"] = ana.facts()[0].id
        yield opened


def reads(memory, user="ana"):
    memory.digest()
    return [(event.actor, event.ref) for event in memory.user(user).audit() if event.kind == "memory.read"]


@pytest.mark.parametrize("call", READS)
def test_each_call_that_answers_with_words_is_logged_by_its_name(memory, call):
    what, make = READS[call]
    with acting("k1"), suppress(HoldfastError):  # without a model no prompt is tried
        make(memory.user("ana"), memory.conversation("c", user="ana"))

    assert reads(memory) == [("k1", what)]


def test_every_call_is_one_or_the_other():
    """A new door says whether it is a read: it joins one of the two tables above."""
    for door in (User, Conversation, Prompts):
        named = {call.partition(".")[2] for call in READS if call.startswith(f"{door.__name__}.")}
        silent = set(SILENT[door.__name__].split())
        assert named | silent == {name for name in dir(door) if not name.startswith("_")}
        assert not named & silent


def test_names_counts_states_and_choices_are_no_reads(memory):
    ana, chat = memory.user("ana"), memory.conversation("c", user="ana")
    ana.conversations(), ana.overview(), ana.subjects(), ana.status(), ana.usage(), ana.audit(), ana.events()
    ana.prompts.get("chunk_summary"), ana.prompts.versions("chunk_summary"), chat.state(), chat.rebuilds()
    (
        memory.admin.users(),
        memory.admin.activity(since=date(2026, 1, 1)),
        memory.admin.newest_events(),
        memory.admin.containing("porto"),
    )

    assert reads(memory) == []


def test_who_changes_something_is_in_the_log_for_the_change_alone(memory):
    ana = memory.user("ana")
    ana.correct(FACT["id"], value="Faro")
    ana.remember(category="hobby", key="plays", value="the violin")
    memory.conversation("c", user="ana").edit(3, "The garden was red.")

    assert reads(memory) == []


def test_a_conversation_that_is_read_is_named(memory):
    memory.conversation("c", user="ana").summaries()
    memory.digest()

    (read,) = [event for event in memory.user("ana").audit() if event.kind == "memory.read"]
    assert (read.conversation, read.subject, read.ref) == ("c", "self", "summaries")


def test_figures_of_all_name_those_alone_whose_questions_they_list(memory):
    memory.conversation("c", user="bo").record("The weather is fine.", "Indeed.")
    memory.admin.metrics()

    assert reads(memory) == [("local", "metrics")]
    assert reads(memory, "bo") == []


ROUTES = [
    ("GET", "/v1/users/ana/facts", "facts"),
    ("GET", "/v1/users/ana/facts/{fact}", "facts"),
    ("GET", "/v1/users/ana/history", "facts"),
    ("GET", "/v1/users/ana/story", "story"),
    ("GET", "/v1/users/ana/rejected", "rejected"),
    ("POST", "/v1/users/ana/search", "search"),
    ("POST", "/v1/users/ana/explain", "explain"),
    ("GET", "/v1/users/ana/export", "export"),
    ("GET", "/v1/users/ana/conversations/c/messages", "messages"),
    ("GET", "/v1/users/ana/conversations/c/summaries", "summaries"),
    ("GET", "/v1/users/ana/conversations/c/learned", "facts"),
    ("GET", "/v1/users/ana/conversations/c/episodes", "facts"),
    ("GET", "/v1/users/ana/conversations/c/sent", "sent"),
    ("POST", "/v1/users/ana/conversations/c/context", "context"),
    ("GET", "/v1/users/ana/conversations/c", ""),
    ("GET", "/v1/users/ana/conversations", ""),
    ("GET", "/v1/users/ana/audit", ""),
]
PAGES = [
    ("/dashboard/users/ana", {"facts", "story", "rejected"}),
    ("/dashboard/users/ana/fact?id={fact}", {"facts"}),
    ("/dashboard/conversations/ana/c", {"messages", "summaries", "facts"}),
    ("/dashboard/conversations/ana/c?sent=2", {"messages", "summaries", "facts", "sent"}),
    ("/dashboard/conversations/ana/c?query=Porto", {"messages", "summaries", "facts", "context"}),
    ("/dashboard/conversations/ana/c?make=facts", {"messages", "summaries", "facts", "preview"}),
    ("/dashboard/recall?user=ana&q=Porto", {"explain"}),
    ("/dashboard/find?q=Porto", {"facts"}),
    ("/dashboard/conversations", set()),
    ("/dashboard/conversations/ana", set()),
    ("/dashboard/users", set()),
    ("/dashboard", set()),
]


@pytest.fixture
def client(memory):
    made = memory.admin.keys.create("operator")
    headers = {"Authorization": f"Bearer {made.key}", "Accept": "text/html, application/json"}
    with TestClient(create_app(memory), base_url=BASE, headers=headers) as client:
        yield client, made.about.id


@pytest.mark.parametrize(("method", "path", "what"), ROUTES)
def test_over_http_the_key_is_named(memory, client, method, path, what):
    asked, key = client
    body = {"json": {"query": "Porto"}} if method == "POST" else {}
    assert asked.request(method, path.format(fact=FACT["id"]), **body).status_code == 200

    assert reads(memory) == ([(key, what)] if what else [])


@pytest.mark.parametrize(("path", "whats"), PAGES)
def test_a_page_reads_what_it_shows(memory, client, path, whats):
    asked, key = client
    assert asked.get(path.format(fact=FACT["id"])).status_code == 200

    found = reads(memory)
    assert {actor for actor, _ in found} <= {key}
    assert {what.partition(" ")[0] for _, what in found} == whats
