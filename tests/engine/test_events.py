"""What happened is told: completely, in order, to every process, and without a word of what was said."""

from __future__ import annotations

import subprocess
import sys

from holdfast import Config, Memory
from holdfast.clock import to_ms
from holdfast.scope import acting
from holdfast.testing.fakes import HashEmbedder
from tests import keeping

WRITER = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    chat = memory.conversation(sys.argv[2], user="ana")
    for number in range(40):
        chat.append({"role": "user", "content": f"number {number}"})
"""


def told(events, *, jobs=False):
    return [event.kind for event in events if jobs or not event.kind.startswith("job.")]


def test_a_statement_and_its_correction_are_told(memory):
    chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
    chat.record("I live in Porto.")
    (fact,) = ana.facts()
    mark = ana.last_event()
    chat.record("I live in Faro now.")
    assert told(ana.events(after=mark)) == ["message.added", "fact.replaced", "fact.added"]
    mark = ana.last_event()
    ana.correct(ana.facts()[0].id, value="Lisbon")
    assert {"message.added", "fact.corrected", "fact.added"} == set(told(ana.events(after=mark)))
    assert fact.id in {event.ref for event in ana.events() if event.kind == "fact.replaced"}


def test_time_is_that_of_the_memory(memory, clock):
    memory.conversation("c", user="ana").record("Hello.")
    assert {event.at_ms for event in memory.user("ana").events()} == {to_ms(clock())}


def test_who_did_it_is_told(memory):
    chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
    with acting("k1"):
        chat.record("I live in Porto.")
    assert {event.actor for event in ana.events()} == {"k1"}
    mark = ana.last_event()
    memory.digest()
    assert {event.actor for event in ana.events(after=mark)} == {"local"}


def test_what_threads_do_by_themselves_is_nobodys_doing():
    with Memory(embedder=HashEmbedder(), background=True) as memory:
        with acting("k1"):
            memory.conversation("c", user="ana").record("Nice weather.")
        memory.digest()
        actors = {event.kind: event.actor for event in memory.user("ana").events()}
    assert actors["message.added"] == "k1"
    assert actors["job.running"] in ("background", "local")  # whoever was faster: the threads, or digest()


def test_one_conversation_and_what_is_about_all_of_them(memory):
    ana = memory.user("ana")
    for name in ("a", "b"):
        memory.conversation(name, user="ana").record("Nice weather.")
    ana.pause()
    seen = ana.events(conversation="a")
    assert {event.conversation for event in seen} == {"a", ""}
    assert told(seen) == ["message.added", "consent.changed"]


def test_a_subject_is_told_of_itself_and_of_facts_about_the_user(memory):
    for subject, words in (("rex", "Rex weighs 12 kg."), ("tom", "Tom weighs 30 kg."), (None, "I live in Porto.")):
        memory.conversation("c", user="ana", subject=subject).record(words)
    seen = memory.user("ana", subject="rex").events()
    assert {event.subject for event in seen} == {"rex", "self"}
    assert told(event for event in seen if event.subject == "self") == ["fact.added"]


def test_pages_of_the_audit_hold_everything_once(memory):
    chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
    for number in range(30):
        chat.append({"role": "user", "content": f"number {number}"})
    found, before = [], None
    while page := ana.audit(before=before, limit=7):
        found += page
        before = page[-1].id
    assert found[::-1] == ana.events(limit=1000)
    assert [event.id for event in found[::-1]] == list(range(found[-1].id, found[0].id + 1))


def test_what_is_too_old_is_passed_over_and_the_reader_can_tell():
    with Memory(embedder=None, config=Config(event_rows=256)) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        chat.append({"role": "user", "content": "first"})
        mark = ana.last_event()
        for _ in range(600):
            ana.never_remember("x")
        found = ana.events(after=mark, limit=10)
        assert found[0].id > mark + 1
        assert memory.admin.events.news({("default", "ana", "default"): mark})["default", "ana", "default"].lost
        assert memory.doctor().ok


def test_after_an_erasure_nothing_here_says_who_it_was(memory):
    memory.conversation("ana-chat", user="anastasia").record("I live in Porto.")
    with acting("k1"):
        receipt = memory.user("anastasia").erase()
    assert receipt.rows["events"] > 0
    assert memory.user("anastasia").events() == []
    (event,) = memory.admin.events.of_org()
    assert (event.kind, event.actor, event.user) == ("erased", "k1", "")
    assert "ana" not in repr(memory.admin.events.of_org()).lower()
    assert memory.user("anastasia").erase().rows == {}
    assert len(memory.admin.events.of_org()) == 1


def test_a_cleared_conversation_and_an_erased_subject_are_not_named(memory):
    memory.conversation("vet visit", user="ana", subject="rex").record("Rex weighs 12 kg.")
    memory.conversation("work", user="ana").record("Nice weather.")
    memory.conversation("work", user="ana").clear()
    memory.user("ana", subject="rex").erase()
    left = repr(memory.user("ana").events(limit=1000))
    assert not [name for name in ("vet visit", "rex", "work") if repr(name) in left]
    assert memory.doctor().ok


def test_an_export_holds_no_events(memory):
    memory.conversation("c", user="ana").record("I live in Porto.")
    exported = memory.user("ana").export()
    assert "event" not in repr(sorted(exported)).lower()
    memory.user("ana").erase()
    memory.import_(exported)
    assert {"message.added", "fact.added"} <= set(told(memory.user("ana").events()))


def test_every_process_sees_every_event(tmp_path):
    """Two others write while we look: each event comes once, in order, and a change is noticed."""
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        memory.conversation("here", user="ana").append({"role": "user", "content": "hello"})
        ana, user = memory.user("ana"), ("default", "ana", "default")
        head, looked, seen = ana.last_event(), memory.admin.events.changes(), []
        others = [subprocess.Popen([sys.executable, "-c", WRITER, keeping.address(path), name]) for name in ("a", "b")]
        done = False
        while not done:
            done = all(other.poll() is not None for other in others)
            if (now := memory.admin.events.changes()) != looked:
                looked = now
                for news in memory.admin.events.news({user: head}).values():
                    assert not news.lost
                    seen += news.events
                    head = news.events[-1].id
        assert [other.returncode for other in others] == [0, 0]
        assert [event.id for event in seen] == list(range(seen[0].id, seen[0].id + len(seen)))
        added = [(event.conversation, event.ref) for event in seen if event.kind == "message.added"]
        assert sorted(added) == sorted((name, str(n)) for name in ("a", "b") for n in range(1, 41))


def reads(user):
    return [(event.actor, event.ref, event.conversation) for event in user.audit() if event.kind == "memory.read"]


def test_reads_are_logged_beside_the_changes_where_they_are_wanted(tmp_path):
    with Memory(tmp_path / "m.db", config=Config(read_log_share=1.0), embedder=None) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        chat.record("I live in Porto.")
        with acting("k1"):
            ana.facts()
            ana.facts()
            chat.context()
        ana.search("Porto")
        assert reads(ana) == []  # nothing is written while one reads
        chat.record("Thanks!")
        assert set(reads(ana)) == {("k1", "facts 2", ""), ("k1", "context", "c"), ("local", "search", "")}
        assert memory.admin.newest_events()[0].kind != "memory.read"
        assert memory.doctor().ok


def test_a_share_of_the_reads_is_logged_and_none_by_default(tmp_path):
    with Memory(tmp_path / "m.db", config=Config(read_log_share=0.25), embedder=None) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        chat.record("I live in Porto.")
        for _ in range(400):
            ana.facts()
        memory.digest()
        ((_, ref, _),) = reads(ana)
        assert 50 <= int(ref.split()[1]) <= 150
    with Memory(tmp_path / "n.db", embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.")
        memory.user("ana").facts()
        memory.digest()
        assert reads(memory.user("ana")) == []


def test_reads_that_wait_are_bounded_and_go_with_the_user(tmp_path):
    with Memory(tmp_path / "m.db", config=Config(read_log_share=1.0), embedder=None) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        chat.record("I live in Porto.")
        for number in range(100):
            memory.conversation(f"c{number}", user="ana").load()
        memory.digest()
        assert len(reads(ana)) == 20
        assert {conversation for _, _, conversation in reads(ana)} == {""}  # such conversations do not exist
        ana.facts()
        ana.erase()
        chat.record("Hello again.")
        memory.digest()
        assert reads(ana) == []
        assert memory.doctor().ok


def test_an_incognito_conversation_is_not_logged(tmp_path):
    with Memory(tmp_path / "m.db", config=Config(read_log_share=1.0), embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.")
        memory.conversation("secret", user="ana", incognito=True).context()
        memory.digest()
        assert reads(memory.user("ana")) == []
