"""
The stories that every surface tells, the drivers that call the library, the command, and the tools, and what each surface lacks.

A surface is a way to the memory.  Its driver has the calls that the surface offers.  `LACKS` has the reason for each call that it
does not; that is done beside it, through the library on the same store, so that each story runs whole through each surface.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import mcp
from mcp.client.streamable_http import streamable_http_client

from holdfast.testing.fakes import FakeClock
from tests import keeping

CHAT = "web-42"
PESCATARIAN = "Eats fish but no meat: is pescatarian."
Run = Callable[..., Any]


class Doors:
    """
    A `Memory`, or what has its calls.  It has every call that a story uses; facts are named by their sentences.

    Receipts are reduced to their level.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._chat = memory.conversation(CHAT, user="ana")
        self._ana = memory.user("ana")

    def say(self, text: str) -> None:
        """Store what the user says, with a reply."""
        self._chat.record(text, "Noted.")

    def messages(self) -> list[str]:
        return [message.content for message in self._chat.load() if message.role == "user"]

    def rate(self, seq: int, score: str) -> None:
        self._chat.rate({"up": 1.0, "down": 0.0}[score], seq=seq)

    def edit(self, seq: int, text: str) -> None:
        self._chat.edit(seq, text)

    def forget_message(self, seq: int) -> None:
        self._chat.forget(seq)

    def digest(self) -> None:
        """Do the background work that is due."""
        self._memory.digest()

    def jobs(self, state: str = "") -> list[str]:
        """Return the ids of the jobs that are not finished."""
        return [job.id for job in self._memory.jobs(state or None)]

    def cancel(self, job: str) -> None:
        self._memory.cancel(job)

    def retry(self, job: str) -> None:
        self._memory.retry(job)

    def facts(self) -> list[str]:
        """Return the active facts in alphabetical order."""
        return sorted(fact.text for fact in self._ana.facts())

    def history(self, category: str) -> list[str]:
        """Return every value that a category had, oldest first."""
        return [fact.text for fact in self._ana.history(category)]

    def search(self, query: str) -> list[str]:
        return [hit.text for hit in self._ana.search(query)]

    def context(self, query: str) -> str:
        return str(self._chat.context(query).to_text())

    def remember(self, text: str) -> None:
        self._ana.remember(text)

    def correct(self, fact: str, value: str) -> None:
        self._ana.correct(self._id(fact), value=value)

    def never_true(self, fact: str) -> None:
        self._ana.never_true(self._id(fact))

    def restore(self, fact: str) -> None:
        self._ana.restore(self._id(fact))

    def forget(self, fact: str) -> str:
        return str(self._ana.forget(self._id(fact)).level)

    def _id(self, text: str) -> str:
        return str(next(fact.id for fact in self._ana.history() if fact.text == text))

    def subjects(self) -> list[str]:
        """Return the names of the subjects that the user speaks of."""
        return [one.name for one in self._ana.subjects()]

    def name_subject(self, subject: str, name: str, alias: str) -> None:
        self._ana.subject(subject, name=name, aliases=(alias,))

    def merge_subjects(self, subject: str, into: str) -> None:
        self._ana.merge_subjects(subject, into)

    def never(self, topic: str) -> None:
        self._ana.never_remember(topic)

    def allow(self, topic: str) -> None:
        self._ana.allow(topic)

    def pause(self) -> None:
        self._ana.pause()

    def resume(self) -> None:
        self._ana.resume()

    def opt_out(self) -> str:
        return str(self._ana.opt_out().level)

    def opt_in(self) -> None:
        self._ana.opt_in()

    def status(self) -> str:
        return str(self._ana.status().state)

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ana.export()
        return found

    def import_(self, data: dict[str, Any]) -> None:
        self._memory.import_(data)

    def erase(self) -> str:
        return str(self._ana.erase().level)

    def summaries(self) -> list[str]:
        """Return the active summaries of chunks, in order."""
        return [summary.text for summary in self._chat.summaries(level=1)]

    def rebuild(self) -> None:
        self._chat.rebuild("summaries")

    def put_back(self) -> None:
        """Revert the last rebuild."""
        self._chat.restore(self._chat.rebuilds()[-1].id)

    def versions(self) -> int:
        """Count the stored versions of summaries."""
        return len(self._chat.summaries(level=1, live=False))

    def prompt(self) -> str:
        """Return the prompt for summaries of chunks."""
        return str(self._ana.prompts.get("chunk_summary"))

    def set_prompt(self, text: str) -> None:
        self._ana.prompts.set("chunk_summary", text)

    def reset_prompt(self) -> None:
        self._ana.prompts.reset("chunk_summary")


CALLS = tuple(name for name in vars(Doors) if not name.startswith("_"))


class Command:
    """
    The ``holdfast`` command with ``--json``, called in this process on the file.

    *run* takes the words of a command line and returns the printed JSON.
    """

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder

    def say(self, text: str) -> None:
        self._of_chat("say", text, "--reply", "Noted.")

    def messages(self) -> list[str]:
        if CHAT not in {talk["conversation"] for talk in self._of("list")}:
            return []
        return [said["content"] for said in self._of_chat("messages") if said["role"] == "user"]

    def rate(self, seq: int, score: str) -> None:
        self._of_chat("rate", score, "--message", str(seq))

    def edit(self, seq: int, text: str) -> None:
        self._of_chat("edit", str(seq), text)

    def forget_message(self, seq: int) -> None:
        self._of_chat("forget", "--message", str(seq), "--yes")

    def digest(self) -> None:
        self._run("digest")

    def jobs(self, state: str = "") -> list[str]:
        return [job["id"] for job in self._run("jobs", *(("--state", state) if state else ()))["jobs"]]

    def cancel(self, job: str) -> None:
        self._run("jobs", "--cancel", job)

    def retry(self, job: str) -> None:
        self._run("jobs", "--retry", job)

    def facts(self) -> list[str]:
        return sorted(fact["text"] for fact in self._of("facts"))

    def history(self, category: str) -> list[str]:
        return [fact["text"] for fact in self._of("history", category)]

    def search(self, query: str) -> list[str]:
        return [hit["text"] for hit in self._of("search", query)]

    def context(self, query: str) -> str:
        return "\n".join(message["content"] for message in self._of_chat("context", query)["messages"])

    def remember(self, text: str) -> None:
        self._of("remember", text)

    def correct(self, fact: str, value: str) -> None:
        self._of("correct", self._id(fact), value)

    def never_true(self, fact: str) -> None:
        self._of("never-true", self._id(fact))

    def restore(self, fact: str) -> None:
        self._of("restore", self._id(fact))

    def forget(self, fact: str) -> str:
        return str(self._of("forget", self._id(fact), "--yes")["level"])

    def _id(self, text: str) -> str:
        known = [*self._of("facts"), *self._of("history", "home"), *self._of("history", "dietary")]
        return str(next(fact["id"] for fact in known if fact["text"] == text))

    def subjects(self) -> list[str]:
        return [one["name"] for one in self._of("subjects")]

    def name_subject(self, subject: str, name: str, alias: str) -> None:
        self._of("subjects", subject, "--name", name, "--alias", alias)

    def merge_subjects(self, subject: str, into: str) -> None:
        self._of("subjects", subject, "--into", into, "--yes")

    def never(self, topic: str) -> None:
        self._of("never-remember", topic)

    def allow(self, topic: str) -> None:
        self._of("allow", topic)

    def pause(self) -> None:
        self._of("pause")

    def resume(self) -> None:
        self._of("resume")

    def opt_out(self) -> str:
        return str(self._of("opt-out", "--yes")["receipt"]["level"])

    def opt_in(self) -> None:
        self._of("opt-in")

    def status(self) -> str:
        return str(self._of("status")["state"])

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = self._of("export")
        return found

    def import_(self, data: dict[str, Any]) -> None:
        file = self._folder / "export.json"
        file.write_text(json.dumps(data), "utf-8")
        self._of("import", str(file))

    def erase(self) -> str:
        return str(self._of("erase", "--yes")["level"])

    def summaries(self) -> list[str]:
        return [summary["text"] for summary in self._of_chat("summaries", "--level", "1")]

    def rebuild(self) -> None:
        self._of_chat("rebuild", "summaries")

    def put_back(self) -> None:
        self._of_chat("rebuild", "--undo", "last")

    def versions(self) -> int:
        return len(self.summaries()) + sum(made["replaced"] for made in self._of_chat("rebuild", "--list"))

    def prompt(self) -> str:
        return str(self._of("prompts", "chunk_summary")["text"])

    def set_prompt(self, text: str) -> None:
        self._of("prompts", "chunk_summary", "--set", text)

    def reset_prompt(self) -> None:
        self._of("prompts", "chunk_summary", "--reset")

    def _of(self, *words: str) -> Any:
        return self._run(words[0], "--user", "ana", *words[1:])

    def _of_chat(self, *words: str) -> Any:
        return self._of(*words, "--conversation", CHAT)


class Tools:
    """
    The tools of the Model Context Protocol, called by the official client over HTTP with a user's key.

    Each call opens a session, as the server keeps none.
    """

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address, key

    def facts(self) -> list[str]:
        return sorted(item["text"] for item in self._call("list_memories")["result"])

    def history(self, category: str) -> list[str]:
        return [item["text"] for item in self._call("memory_history", category=category)["result"]]

    def search(self, query: str) -> list[str]:
        return [item["text"] for item in self._call("search_memory", query=query)["result"]]

    def context(self, query: str) -> str:
        return str(self._call("get_context", query=query, conversation=CHAT)["result"])

    def remember(self, text: str) -> None:
        assert self._call("add_memory", text=text)["op"] == "new"

    def correct(self, fact: str, value: str) -> None:
        self._call("update_memory", memory_id=self._id(fact), value=value)

    def forget(self, fact: str) -> str:
        return str(self._call("delete_memory", memory_id=self._id(fact))["level"])

    def _id(self, text: str) -> str:
        return str(next(item["id"] for item in self._call("list_memories")["result"] if item["text"] == text))

    def _call(self, tool: str, **arguments: Any) -> Any:
        async def work() -> Any:
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {self._key}"}) as http:
                async with mcp.Client(streamable_http_client(f"{self._address}/mcp", http_client=http)) as client:
                    answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return answer.structured_content

        return asyncio.run(work())


# The calls that a surface does not offer, with the reason.  A call that a driver neither has nor lists here, or that it
# has although it is listed, fails a test.
OPERATORS = "work in the background is the operator's"
COSTS = "it costs calls of a model, which the operator pays"
REVERTS = "it reverts a rebuild, which is the operator's"
LACKS: dict[str, dict[str, str]] = {
    "tools": {
        "say": "the program that holds the chat stores its messages; an assistant's tools note and look up",
        "rate": "users judge replies, not the model that wrote them",
        "messages edit forget_message": "a transcript belongs to the program; search_memory finds passages of it",
        "digest jobs cancel retry": OPERATORS,
        "never_true restore": "seven tools, so that their list stays cheap: an assistant corrects or forgets",
        "never allow": "users decide what may be remembered, not a model",
        "pause resume opt_out opt_in status": "users decide whether there is memory, not a model",
        "subjects name_subject": "a subject is found by its facts, and named by the program that has the pets or patients",
        "merge_subjects": "it cannot be undone, so a program or an operator does it",
        "export": "everything at once is more than the window of a model holds",
        "import_": "an empty memory is filled by a user or a program",
        "erase": "a model must not be able to erase everything with one call",
        "summaries": "the resource memory://conversations/{id}/summary holds those of the highest levels",
        "rebuild": COSTS,
        "put_back": REVERTS,
        "versions": "older versions are the operator's",
        "prompt set_prompt reset_prompt": "a model must not change the prompts of models",
    },
    "dashboard": {
        "say": "conversations are shown and corrected here, and held elsewhere",
        "subjects": "the page of a user shows the facts under the names of their subjects",
        "name_subject merge_subjects": "a program or the command does it, a merge after a dry run",
        "remember": "an operator corrects what was learned; new facts come from users or from a program",
    },
    "me": {
        "say": "the page is about what is remembered; users talk in their chat",
        "messages": "the page is about what is remembered; Download holds every message",
        "rate": "a reply is rated beside it, in the chat",
        "edit": "messages are edited in the chat, or by the operator",
        "forget_message": "forgetting a fact erases the words that it rests on",
        "digest jobs cancel retry": OPERATORS,
        "search": "the page lists everything",
        "subjects": "the page shows the facts under the names of their subjects",
        "name_subject merge_subjects": "users introduce subjects in their chat; the operator merges",
        "context": "what a model is sent is shown to operators",
        "remember": "users state new facts in their chat; here they change existing ones",
        "never_true": "users change or forget; both end a belief",
        "import_": "an empty memory is filled by the operator",
        "summaries": "the page is about facts; Download holds the rest",
        "rebuild": COSTS,
        "put_back": REVERTS,
        "versions": "older versions are the operator's",
        "prompt set_prompt reset_prompt": "prompts are the operator's",
    },
}
# The stories of which a surface offers no call, with the reason.
STORIES_LEFT_OUT: dict[str, dict[str, str]] = {
    "tools": {
        "work_can_be_held_back_and_wanted_again": OPERATORS,
        "own_words_for_a_prompt_are_used_until_they_are_not": "a model must not change the prompts of models",
        "a_reply_is_rated": "users judge replies, not the model that wrote them",
        "chunks_are_summarized_and_made_again_on_demand": "summaries are written and rebuilt by operators",
    },
    "me": {
        "work_can_be_held_back_and_wanted_again": OPERATORS,
        "own_words_for_a_prompt_are_used_until_they_are_not": "prompts are the operator's",
        "chunks_are_summarized_and_made_again_on_demand": "summaries are written and rebuilt by operators",
        "what_was_said_is_found": "the page lists facts, and has no search",
        "what_was_said_comes_back_letter_by_letter": "the page lists facts, and nothing is learned in this story",
    },
}


def reasons(surface: str) -> dict[str, str]:
    """Return the reason for each call that *surface* does not offer."""
    return {call: reason for calls, reason in LACKS.get(surface, {}).items() for call in calls.split()}


class Surface:
    """
    A driver, completed by the library on the same store for what it lacks; ``own`` counts the calls that it did itself.

    A minute passes before each call, so that what happened has an order.
    """

    def __init__(self, name: str, driver: Any, beside: Any, clock: FakeClock) -> None:
        self.name, self.own = name, 0
        self._driver, self._beside, self._clock = driver, beside, clock

    def __getattr__(self, call: str) -> Any:
        self._clock.advance(minutes=1)
        found = getattr(self._driver, call, None)
        if found is None:
            assert call in reasons(self.name), f"{self.name} offers no {call}, and LACKS gives no reason"
            return getattr(self._beside, call)
        self.own += 1
        return found


def a_statement_is_believed_before_the_next_reply(at: Any) -> None:
    at.say("I'm vegetarian, and I live in Porto.")

    assert at.facts() == ["Is vegetarian.", "Lives in Porto."]
    assert "Is vegetarian." in at.context("What should I cook?")


def a_contradiction_leaves_one_belief_and_a_history(at: Any) -> None:
    at.say("I'm vegetarian.")
    at.say("Actually, I eat fish now.")

    assert at.facts() == [PESCATARIAN]
    assert at.history("dietary") == ["Is vegetarian.", PESCATARIAN]


def what_was_noted_is_known_in_the_next_context(at: Any) -> None:
    at.say("Hello there.")
    at.remember("I'm allergic to peanuts.")

    (fact,) = at.facts()
    assert "peanuts" in fact
    assert fact in at.context("Suggest a snack.")


def what_was_said_is_found(at: Any) -> None:
    at.say("The blue notebook is in the attic.")
    at.say("The weather is lovely today.")

    assert "attic" in at.search("Where is the blue notebook?")[0]
    assert at.messages() == ["The blue notebook is in the attic.", "The weather is lovely today."]


def a_correction_reaches_the_next_context(at: Any) -> None:
    at.say("I live in Porto.")
    at.correct("Lives in Porto.", "Lisbon")

    assert at.facts() == ["Lives in Lisbon."]
    context = at.context("Where do I live?")
    assert "Lives in Lisbon." in context
    assert "Lives in Porto." not in context


def what_was_never_true_gives_way_to_what_it_replaced(at: Any) -> None:
    at.say("I live in Porto.")
    at.say("I live in Faro now.")
    assert at.facts() == ["Lives in Faro."]
    at.never_true("Lives in Faro.")

    assert at.facts() == ["Lives in Porto."]


def a_past_fact_can_be_believed_again(at: Any) -> None:
    at.say("I live in Porto.")
    at.correct("Lives in Porto.", "Lisbon")
    at.restore("Lives in Porto.")

    assert at.facts() == ["Lives in Porto."]


def a_subject_is_known_by_all_of_its_names(at: Any) -> None:
    at.say("My sister lives in Porto.")
    at.say("My sister Meera is a nurse.")
    at.name_subject("pet-42", "Luna", "my dog")
    at.say("My dog is allergic to chicken.")
    assert at.subjects() == ["Luna", "Meera"]
    at.name_subject("pet-43", "Moon", "the puppy")
    at.merge_subjects("pet-43", "pet-42")
    at.say("Moon weighs 12 kg.")

    assert at.subjects() == ["Luna", "Meera"]
    assert {"Luna is allergic to chicken.", "Luna weighs 12 kg."} <= set(at.facts())


def what_is_forgotten_is_nowhere(at: Any) -> None:
    at.say("I'm vegetarian.")
    at.say("I live in Porto.")
    level = at.forget("Lives in Porto.")

    assert level == keeping.erased()
    assert at.facts() == ["Is vegetarian."]
    assert at.history("home") == []
    assert "Porto" not in " ".join([*at.search("Where do I live?"), at.context("Where do I live?"), str(at.export())])


def a_pause_holds_until_it_ends(at: Any) -> None:
    at.say("I'm vegetarian.")
    at.pause()
    assert at.status() == "paused"
    at.say("I live in Porto.")
    assert at.messages() == ["I'm vegetarian."]
    at.resume()

    assert at.status() == "active"
    at.say("I live in Faro.")
    assert at.facts() == ["Is vegetarian.", "Lives in Faro."]


def who_opts_out_is_erased_and_left_alone(at: Any) -> None:
    at.say("I'm vegetarian.")
    assert at.opt_out() == keeping.erased()
    assert at.status() == "opted-out"
    at.say("I live in Porto.")
    assert at.facts() == at.messages() == []
    at.opt_in()

    at.say("I live in Faro.")
    assert at.facts() == ["Lives in Faro."]


def a_topic_that_is_never_to_be_remembered_is_not(at: Any) -> None:
    at.never("home")
    at.say("I live in Porto, and I'm vegetarian.")
    assert at.facts() == ["Is vegetarian."]
    at.allow("home")
    at.say("I live in Faro.")

    assert at.facts() == ["Is vegetarian.", "Lives in Faro."]


def an_export_is_taken_back_as_it_was(at: Any) -> None:
    at.say("I'm vegetarian.")
    at.say("I live in Porto.")
    data = at.export()
    assert at.erase() == keeping.erased()
    assert at.facts() == at.messages() == []
    at.import_(data)

    assert at.facts() == ["Is vegetarian.", "Lives in Porto."]
    assert at.messages() == ["I'm vegetarian.", "I live in Porto."]


def other_words_in_a_message_change_what_was_learned(at: Any) -> None:
    at.say("I live in Porto.")
    at.edit(1, "I live in Faro.")
    assert at.messages() == ["I live in Faro."]
    at.digest()
    assert at.facts() == ["Lives in Faro."]
    at.forget_message(1)

    assert at.facts() == at.messages() == []


def a_reply_is_rated(at: Any) -> None:
    at.say("I live in Porto.")
    at.rate(2, "down")
    at.rate(2, "up")

    assert at.export()["conversations"][0]["messages"][1]["meta"]["rating"] == 1.0


def chunks_are_summarized_and_made_again_on_demand(at: Any) -> None:
    for number in range(12):
        at.say(f"The weather is item {number} on the list.")
    at.digest()
    first = at.summaries()
    assert first
    kept = at.versions()
    at.rebuild()
    assert len(at.summaries()) == len(first)
    assert at.versions() > kept
    at.put_back()

    assert at.summaries() == first


def own_words_for_a_prompt_are_used_until_they_are_not(at: Any) -> None:
    ours = at.prompt()
    at.set_prompt("Write a haiku.")
    assert at.prompt() == "Write a haiku."
    at.reset_prompt()

    assert at.prompt() == ours != "Write a haiku."


def work_can_be_held_back_and_wanted_again(at: Any) -> None:
    at.say("Hello there.")
    job = at.jobs()[0]
    at.cancel(job)
    at.digest()
    assert at.jobs("cancelled") == [job]
    at.retry(job)
    at.digest()

    assert at.jobs("cancelled") == []


def what_was_said_comes_back_letter_by_letter(at: Any) -> None:
    """No surface takes words for markup, for a template or for instructions."""
    hostile = "My notebook says <b>{{ 7 * 7 }}</b> & \"'quoted'\" $HOME %s \u202eback é 日本."
    at.say(hostile)

    assert at.messages() == [hostile]
    assert hostile in at.search("What does my notebook say?")


STORIES = [story for story in list(globals().values()) if "at" in getattr(story, "__annotations__", ())]
