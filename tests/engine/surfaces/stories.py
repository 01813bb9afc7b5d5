"""The stories that every surface tells: the same calls, the same assertions."""

from __future__ import annotations

from typing import Any

from tests import keeping

PESCATARIAN = "Eats fish but no meat: is pescatarian."


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


STORIES = [
    story
    for name, story in list(globals().items())
    if getattr(story, "__module__", "") == __name__ and not name.startswith("_") and callable(story)
]
