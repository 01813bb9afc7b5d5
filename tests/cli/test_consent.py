"""``status``, ``pause``, ``opt-out``, ``never-remember``: the choices of a user."""

from __future__ import annotations

import pytest

from .conftest import Answer, Holdfast


def stored(holdfast: Holdfast, *who: str) -> int:
    return int(holdfast("status", "--json", *who).data["conversations"])


def test_status_shows_the_state_and_how_much_is_stored(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    run, data = holdfast("status"), holdfast("status", "--json").data

    assert run.out.startswith("memory of me: active")
    assert "stored: 1 conversation, 1 fact" in run.out
    assert (data["state"], data["never"], data["conversations"], data["facts"]) == ("active", [], 1, 1)


def test_while_paused_nothing_is_stored_and_say_says_so(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    paused = holdfast("pause")
    said = holdfast("say", "I moved to Porto.", "--no-digest")
    context = holdfast("context", "Where do I live?", "-o", "text")
    holdfast("resume")

    assert "paused since" in paused.out
    assert "undo: holdfast resume" in paused.out
    assert said.out == "not stored: memory is paused\n"
    assert "Lisbon" not in context.out
    assert "Lisbon" in holdfast("context", "Where do I live?", "-o", "text").out


def test_a_user_may_opt_out_before_the_first_message(holdfast: Holdfast) -> None:
    run = holdfast("opt-out", "--user", "ana", "--json")

    assert run.code == 0
    assert run.data["state"] == "opted-out"
    assert holdfast("say", "I live in Lisbon.", "--user", "ana").out == "not stored: memory is opted out\n"


def test_resuming_does_not_end_an_opt_out(holdfast: Holdfast) -> None:
    holdfast("opt-out")

    assert holdfast("resume", "--json").data["state"] == "opted-out"
    assert holdfast("opt-in", "--json").data["state"] == "active"


def test_opting_out_erases_after_asking(holdfast: Holdfast, answer: Answer) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    answer("n\n")
    no = holdfast("opt-out")
    kept = stored(holdfast)
    answer("y\n")
    yes = holdfast("opt-out")

    assert (no.code, kept) == (1, 1)
    assert "1 conversation, 1 message, 1 fact will be erased. Continue? [y/N]" in no.err
    assert "error[not-confirmed]: nothing was changed" in no.err
    assert (yes.code, stored(holdfast)) == (0, 0)
    assert "E2" in yes.out


def test_opting_out_may_keep_what_is_stored(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    run = holdfast("opt-out", "--keep", "--json")

    assert (run.code, run.data["receipt"]["level"]) == (0, "E0")
    assert stored(holdfast) == 1


def test_json_output_never_asks(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    run = holdfast("opt-out", "--json")

    assert (run.code, run.error["code"], run.error["hint"]) == (2, "not-confirmed", "add --yes")
    assert holdfast("status", "--json").data["state"] == "active"
    assert holdfast("opt-out", "--json", "--yes").code == 0


def test_a_topic_is_never_remembered_until_it_is_allowed(holdfast: Holdfast) -> None:
    never = holdfast("never-remember", "allergy")
    holdfast("say", "I'm allergic to nuts.", "--no-digest")
    without = holdfast("facts", "--json").data
    allowed = holdfast("allow", "allergy", "--json").data
    holdfast("say", "I'm allergic to eggs.", "--no-digest")

    assert "never remembered: allergy" in never.out
    assert (without, allowed["never"]) == ([], [])
    assert [fact["value"] for fact in holdfast("facts", "--json").data] == ["eggs"]


@pytest.mark.parametrize("command", ["pause", "opt-out", "never-remember"])
def test_a_choice_of_one_user_leaves_the_others(holdfast: Holdfast, command: str) -> None:
    topic = ("home",) if command == "never-remember" else ()
    holdfast(command, *topic, "--user", "ana")
    holdfast("say", "I live in Lisbon.", "--user", "bo", "--no-digest")

    assert holdfast("status", "--user", "bo", "--json").data["state"] == "active"
    assert [fact["value"] for fact in holdfast("facts", "--user", "bo", "--json").data] == ["Lisbon"]


def test_a_choice_for_one_subject_leaves_the_others(holdfast: Holdfast) -> None:
    holdfast("pause", "--subject", "luna")
    holdfast("say", "She is allergic to chicken.", "--subject", "luna", "-c", "vet", "--no-digest")
    holdfast("say", "He is allergic to chicken.", "--subject", "max", "-c", "vet", "--no-digest")

    assert {fact["subject"] for fact in holdfast("facts", "--json").data} == {"max"}
