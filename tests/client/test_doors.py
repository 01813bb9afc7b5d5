"""The client has the front door's calls: names, parameters, results; sync and async; and gives the same values."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path

import httpx2
import pytest

import holdfast
from holdfast import Message, client, strategies
from holdfast.client import AsyncClient, Client, NotAllowed, Unreachable
from holdfast.errors import BadInput, ConfigError, KeyReused, NotFound, StoreClosed

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "make_client.py"
DOORS = ["Memory", "Conversation", "User", "Prompts", "Admin", "ApiKeys"]
WHY_NOT = {
    "Memory.config": "belongs to whoever starts the server",
    "Admin.reload": "belongs to whoever starts the server, who sends it SIGHUP",
    "Memory.backup": "writes a file on the machine of the store, and holds everybody",
    "Admin.erasures": "is a file on the machine of the store",
    "Admin.provider_keys": "keys of providers are set where the server runs, or by whoever signs in",
    "Admin.prompts": "are set by operators where the server runs: the command, the pages, PUT /v1/prompts/{name}",
    "Admin.operations": "is GET /v1/jobs/{id}",
    "Admin.events": "is Client.events, a stream of one user's",
    "User.events": "is read as a stream: GET /v1/users/{user}/events",
    "User.rejected_page": "is one page of User.rejected",
    "User.last_event": "is read as a stream: GET /v1/users/{user}/events",
    "Admin.observe": "is called within the process of the memory",
    "Admin.job": "is answered by GET /v1/jobs/{id}, beside long work that requests started",
    "Admin.jobs_of_user": "is a part of Memory.jobs",
    "Admin.backlog": "is what /metrics tells",
    "Admin.call_times": "is what the page Metrics shows; GET /metrics has histograms of the same calls",
    "Admin.activity": "is what the pages Home and Metrics show",
    "Admin.containing": "is what the palette of the pages asks",
    "Admin.newest_events": "is what the pages Home and Changes show",
    "Admin.size_bytes": "is among what GET /v1/stats and /metrics tell",
    "ApiKeys.is_valid": "is what streams of the server ask",
    "ApiKeys.count_messages": "is what a server counts by",
    "ApiKeys.message_counts": "is told by GET /v1/quotas and the page Settings",
    "ApiKeys.copy": "makes what a browser holds while it is signed in",
}


def public(door):
    return {name: value for name, value in vars(door).items() if not name.startswith("_")}


def test_both_clients_are_what_the_script_writes():
    assert subprocess.run([sys.executable, SCRIPT, "--check"], check=False).returncode == 0


@pytest.mark.parametrize("name", DOORS)
def test_names_and_signatures_agree(name):
    """With those of the library, results included; what is missing has a reason."""
    theirs = public(getattr(holdfast, name))
    ours = public(Client if name == "Memory" else getattr(client, name))
    awaited = public(AsyncClient if name == "Memory" else getattr(client, f"Async{name}"))

    ours = {member: value for member, value in ours.items() if f"{name}.{member}" != "Memory.events"}
    awaited = {member: value for member, value in awaited.items() if member in ours}
    assert set(ours) == {member for member in theirs if f"{name}.{member}" not in WHY_NOT}
    assert list(awaited) == list(ours)
    for member, value in ours.items():
        if isinstance(value, property):
            assert isinstance(theirs[member], property)
            assert isinstance(awaited[member], property)
            continue
        assert inspect.signature(value) == inspect.signature(theirs[member]), member
        twin = inspect.signature(awaited[member])
        assert list(twin.parameters.values()) == list(inspect.signature(value).parameters.values()), member
        assert inspect.iscoroutinefunction(awaited[member]) is (member not in ("conversation", "user")), member


def test_both_clients_are_made_alike():
    sync, awaited = inspect.signature(Client), inspect.signature(AsyncClient)
    assert list(sync.parameters) == list(awaited.parameters) == ["url", "key", "timeout_s", "retries", "http"]


@pytest.fixture(scope="module")
def told(library, clock):
    """A user with facts, history, summaries, refusals, prompts and a choice."""
    chat = library.conversation("web-42", user="ana")
    chat.append(
        [
            Message("user", "I live in Lisbon.", name="Ana"),
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}], "at": "2026-01-01T09:00:00Z"},
            {"role": "tool", "content": "22 degrees", "tool_call_id": "c1"},
        ]
    )
    for number in range(45):
        clock.advance(seconds=61)
        chat.record(f"I think I work at Firm{number}. I live in Town{number % 4}.", "Noted.")
    library.digest()
    library.conversation("rex-1", user="ana", subject="rex").record("He is allergic to beef.")
    user = library.user("ana")
    for kids in ("kids", "children"):
        user.remember(f"The {kids} dread the dentist.")
    user.consolidate()
    user.never_remember("health")
    user.prompts.set("chunk_summary", "Write a haiku.")
    chat.record_usage("own:m", input_tokens=90, output_tokens=10, cost=0.5)
    chat.rebuild("summaries", start_seq=1, end_seq=10)
    library.conversation("c", user="é/%", org="a b", bot="?").record("I live in Oslo.")
    return chat


NOON = datetime(2026, 1, 1, 9, 10, tzinfo=UTC)
READS = {
    "messages": lambda m: m.conversation("web-42", user="ana").load(),
    "some messages": lambda m: m.conversation("web-42", user="ana").load(start_seq=5, limit=7),
    "last messages": lambda m: m.conversation("web-42", user="ana").load(last=6),
    "summaries": lambda m: m.conversation("web-42", user="ana").summaries(),
    "old summaries": lambda m: m.conversation("web-42", user="ana").summaries(1, live=False),
    "episodes": lambda m: m.conversation("web-42", user="ana").episodes(),
    "rebuilds": lambda m: m.conversation("web-42", user="ana").rebuilds(),
    "estimate": lambda m: m.conversation("web-42", user="ana").rebuild("facts", dry_run=True),
    "recall": lambda m: m.conversation("web-42", user="ana").recall("Which firm?", last=20, limit=3),
    "context": lambda m: m.conversation("web-42", user="ana").context("Where do I live?", budget_tokens=900),
    "window": lambda m: m.conversation("web-42", user="ana", strategy=strategies.Window(2)).context("And now?"),
    "buffer": lambda m: m.conversation("web-42", user="ana").context(strategy=strategies.SummaryBuffer(300)),
    "incognito": lambda m: m.conversation("web-42", user="ana", incognito=True).context("Who am I?", system="Be kind."),
    "learned": lambda m: m.conversation("web-42", user="ana").learned(start_seq=5, end_seq=40),
    "state": lambda m: m.conversation("web-42", user="ana").state(),
    "no state": lambda m: m.conversation("none", user="ana").state(),
    "overview": lambda m: m.user("ana").overview(),
    "facts": lambda m: m.user("ana").facts(),
    "a page of facts": lambda m: m.user("ana").facts(limit=1, after=("", "", "", "", "")),
    "a page of history": lambda m: m.user("ana").history(
        limit=3, after=(lambda fact: (fact.valid_from, fact.recorded_at, fact.id))(m.user("ana").history()[4])
    ),
    "a page of conversations": lambda m: m.user("ana").conversations(limit=1, after="rex-1"),
    "a page of the overview": lambda m: m.user("ana").overview(limit=1, after=(NOON, "", "")),
    "a page of summaries": lambda m: m.conversation("web-42", user="ana").summaries(limit=2, after=(1, 1, 9, "")),
    "a page of what was learned": lambda m: m.conversation("web-42", user="ana").learned(limit=2, after=(7, NOON, "")),
    "a page of episodes": lambda m: m.conversation("web-42", user="ana").episodes(limit=2, after=(7, NOON, "")),
    "facts of one category": lambda m: m.user("ana").facts("home", kind="attribute"),
    "facts of then": lambda m: m.user("ana").facts("home", as_of=NOON),
    "facts known then": lambda m: m.user("ana").facts(known_at=NOON),
    "archived": lambda m: m.user("ana").facts(archived=True),
    "one fact": lambda m: m.user("ana").fact(m.user("ana").facts()[0].id),
    "history": lambda m: m.user("ana").history("home"),
    "history of a key": lambda m: m.user("ana").history("home", "lives_in"),
    "subject": lambda m: m.user("ana", subject="rex").facts(),
    "search": lambda m: m.user("ana").search("Where do I live?", explain=True, limit=20),
    "search less": lambda m: m.user("ana").search("firm", kinds=["message"], conversation="web-42", min_relevance=0.1),
    "search one kind": lambda m: m.user("ana").search("firm", kinds="fact"),
    "profile": lambda m: m.user("ana").profile(budget_tokens=200),
    "rejected": lambda m: sorted(m.user("ana").rejected(limit=1000), key=str),
    "conversations": lambda m: m.user("ana").conversations(),
    "status": lambda m: m.user("ana").status(),
    "usage": lambda m: m.user("ana").usage(),
    "usage by day": lambda m: m.user("ana").usage(by=["day"], since=date(2026, 1, 1)),
    "all usage": lambda m: m.usage(by=[], user="ana"),
    "audit": lambda m: m.user("ana").audit(limit=1_500),
    "audit before": lambda m: m.user("ana").audit(before=20, limit=7),
    "metrics": lambda m: m.user("ana").metrics(),
    "all metrics": lambda m: m.admin.metrics(org="default"),
    "export": lambda m: m.user("ana").export(),
    "merge": lambda m: m.user("ana").consolidate(dry_run=True),
    "prompt": lambda m: m.user("ana").prompts.get("chunk_summary"),
    "prompts": lambda m: m.user("ana").prompts.versions("chunk_summary"),
    "jobs": lambda m: sorted(m.jobs(), key=lambda job: job.id),
    "ready jobs": lambda m: sorted(m.jobs("ready"), key=lambda job: job.id),
    "stats": lambda m: m.admin.stats(),
    "explain": lambda m: m.user("ana").explain("Where do I live?", limit=5),
    "explain then": lambda m: m.user("ana").explain("Where do I live?", at=NOON),
    "doctor": lambda m: m.doctor(),
    "users": lambda m: m.admin.users(),
    "users after": lambda m: m.admin.users(limit=1, after=m.admin.users()[0]),
    "backfill": lambda m: m.backfill("ana", dry_run=True),
    "backfill all": lambda m: m.backfill(dry_run=True, layers=["summaries"]),
    "any name": lambda m: m.user("é/%", org="a b", bot="?").facts(),
    "nobody": lambda m: m.user("nobody").facts(),
}


@pytest.mark.parametrize("read", READS)
def test_what_is_read_is_the_same_value(library, memory, told, read):
    """Times, tuples, enumerations, nested values: equal to what the library gives, and of the same types."""
    READS[read](library)  # a first context notes what its prefix is
    ours, theirs = READS[read](memory), READS[read](library)

    assert ours == theirs
    assert type(ours) is type(theirs)


def test_what_is_changed_is_changed_there(memory, library, clock):
    """Every call that writes, over HTTP; the library sees what came of it."""
    chat, bo = memory.conversation(user="bo"), memory.user("bo")
    assert len(chat.id) == 16
    receipt = chat.append({"role": "human", "content": "I live in Porto."}, idempotency_key="k1")
    assert [change.fact.value for change in receipt.changes] == ["Porto"]
    assert chat.append({"role": "user", "content": "I live in Porto."}, idempotency_key="k1").duplicate
    with pytest.raises(KeyReused):
        chat.append({"role": "user", "content": "No."}, idempotency_key="k1")
    assert memory.conversation("x", user="bo", incognito=True).record("Secret.").skipped == "incognito"
    clock.advance(seconds=60)
    told = bo.remember("I eat fish.", idempotency_key="k2")
    assert (told.op, bo.remember("I eat fish.", idempotency_key="k2").op) == ("new", "confirmed")
    assert bo.remember(category="things", key="bike", value="red").fact.value == "red"
    assert bo.correct(told.fact.id, value="vegan").op == "replaced"
    assert bo.never_true(bo.facts("things")[0].id).op == "retracted"
    assert bo.restore(bo.history("things")[0].id).op == "new"
    assert bo.forget(bo.facts("things")[0].id).rows
    assert chat.edit(1, "I live in Faro.").changes[0].fact.value == "Faro"
    chat.record("And what else?", "Nothing.")
    chat.end()
    assert memory.digest().jobs > 0
    assert chat.forget(1).rows
    assert library.user("bo").facts("home") == []
    bo.pause()
    assert bo.status().state == library.user("bo").status().state == "paused"
    bo.resume()
    bo.never_remember("health")
    assert bo.status().never == ("health",)
    bo.allow("health")
    assert (bo.status().state, bo.status().never) == ("active", ())
    assert bo.prune().active == len(library.user("bo").facts())
    assert bo.prompts.set("meta_summary", "Tell.").version == 1
    assert bo.prompts.reset("meta_summary").text == ""
    draft = bo.prompts.draft("meta_summary", "Sing.")
    assert (draft.draft, bo.prompts.get("meta_summary") == "Sing.") == (True, False)
    bo.prompts.activate("meta_summary", draft.version)
    assert bo.prompts.get("meta_summary") == "Sing."
    with pytest.raises(ConfigError):
        bo.prompts.preview("meta_summary", "Sing!")
    data = bo.export()
    assert bo.clear().rows
    assert chat.clear().rows
    assert bo.opt_out().level in ("E1", "E2")
    bo.opt_in()
    bo.erase()
    assert memory.import_(data).facts() == library.user("bo").facts()
    bo.erase()
    bo.import_(data)
    assert bo.export()["facts"] == data["facts"]


def test_long_work_is_waited_for_and_its_progress_told(memory, library, told):
    chat, steps, seen = memory.conversation("web-42", user="ana"), [], []
    report = chat.rebuild(
        "summaries", start_seq=11, end_seq=30, progress=lambda done, total: steps.append((done, total))
    )
    assert [item.id for item in report.after] == [
        s.id for s in told.summaries(1) if s.end_seq >= 11 and s.start_seq <= 30
    ]
    assert steps[-1] == (report.ranges, report.ranges)
    assert {item.id for item in chat.restore(report.id).before} == {item.id for item in report.after}
    assert memory.backfill("ana", layers=["summaries"], delay_ms=0, progress=seen.append).errors == 0
    assert memory.user("ana").consolidate().tokens == 0
    with pytest.raises(BadInput):
        chat.rebuild("dreams")


def test_keys_are_made_looked_at_and_ended(memory, library):
    made = memory.admin.keys.create("user", org="acme", user="ana", name="test", expires_at=timedelta(hours=1))
    assert memory.admin.keys.check(made.key) == made.about == library.admin.keys.check(made.key)
    assert made.about in memory.admin.keys.list()
    assert memory.admin.keys.list("acme") == [made.about]
    with pytest.raises(NotFound):
        memory.admin.keys.revoke(made.about.id, org="other")
    memory.admin.keys.revoke(made.about.id)
    assert memory.admin.keys.check(made.key) is None
    assert memory.admin.keys.check("no key") is None
    assert memory.admin.keys.check("ключ") is None


def test_jobs_are_steered(memory, library):
    memory.conversation("jobs", user="jo").record("Hello there.")
    job = next(job for job in memory.jobs() if job.user == "jo" and job.kind == "embed")
    memory.cancel(job.id)
    assert [one.id for one in memory.jobs("cancelled")] == [job.id]
    with pytest.raises(NotFound):
        memory.run_now(job.id)
    memory.retry(job.id)
    memory.run_now(job.id)
    with pytest.raises(NotFound):
        memory.retry(job.id)


def test_a_closed_client_says_so(address):
    client = Client(address, key="hf_x")
    client.close()
    client.close()
    with pytest.raises(StoreClosed):
        client.doctor()


def happened(memory, user, times):
    for number in range(times):
        memory.conversation("web-42", user=user).append({"role": "assistant", "content": f"Line {number}."})


def test_events_are_followed_and_gone_on_with(library, memory):
    """What was there, what comes meanwhile, and after a break only what is new."""
    happened(library, "eve", 3)
    past = memory.events("eve", after=0, follow=False)
    told = [event for event in past if event.kind == "message.added"]
    assert [event.ref for event in told] == ["1", "2", "3"]
    assert past.last_id == library.user("eve").last_event()

    line = iter(memory.events("eve", after=past.last_id))
    happened(library, "eve", 1)
    assert next(event.ref for event in line if event.kind == "message.added") == "4"
    line.close()
    assert list(memory.events("eve", after=library.user("eve").last_event(), follow=False)) == []


def test_events_are_followed_by_awaiting_them(library, address):
    happened(library, "adam", 2)

    async def follow():
        async with AsyncClient(address, key=library.admin.keys.create("user", user="adam").key) as client:
            found = []
            async for event in client.events("adam", after=0):
                found += [event.ref] if event.kind == "message.added" else []
                if len(found) == 2:
                    await asyncio.to_thread(happened, library, "adam", 1)
                if len(found) == 3:
                    return found
            return found

    assert asyncio.run(asyncio.wait_for(follow(), 10)) == ["1", "2", "3"]


def test_a_connection_that_breaks_is_made_again_without_gap_or_repetition():
    """Each answer breaks off in the middle of an event; the next one begins after the last that was whole."""

    def frame(number):
        data = dict.fromkeys(("actor", "org", "user", "bot", "subject", "conversation"), "x")
        data |= {"id": number, "at_ms": 1, "kind": "fact.added", "ref": str(number)}
        return f"id: {number}\nevent: fact.added\ndata: {json.dumps(data)}\n\n"

    class Breaking(httpx2.SyncByteStream):
        def __init__(self, parts):
            self.parts = parts

        def __iter__(self):
            yield from self.parts
            raise httpx2.ReadError("the line broke")

    asked = []

    def answer(request):
        last = int(request.headers.get("last-event-id", 0))
        asked.append(last)
        if last >= 4:
            return httpx2.Response(200, text=f"id: 9\nevent: reset\ndata: {{}}\n\n{frame(10)}")
        whole, broken = frame(last + 1), frame(last + 2)
        return httpx2.Response(200, stream=Breaking([whole.encode(), b": still here\n\n", broken[:40].encode()]))

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        found = list(islice(Client("http://x", key="hf_x", http=http, retries=3).events("ana", after=0), 6))
    assert [(event.kind, event.id) for event in found][4:] == [("reset", 9), ("fact.added", 10)]
    assert [event.id for event in found[:4]] == [1, 2, 3, 4]
    assert asked == [0, 1, 2, 3, 4]


def test_who_may_not_listen_and_who_is_not_answered_is_told(library, address):
    stranger = library.admin.keys.create("user", user="bob").key
    with Client(address, key=stranger) as client, pytest.raises(NotAllowed):
        next(iter(client.events("ana")))
    with Client("http://127.0.0.1:9", key="hf_x", retries=1) as nobody, pytest.raises(Unreachable):
        next(iter(nobody.events("ana")))
