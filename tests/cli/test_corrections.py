"""``remember``, ``correct``, ``never-true`` and ``restore``: how facts are named, what is printed, what can be undone."""

from __future__ import annotations

import pytest

from holdfast import Memory

from .conftest import Holdfast


@pytest.fixture
def ana(holdfast: Holdfast) -> Holdfast:
    """A store in which something is known about ana."""
    assert holdfast("say", "I'm vegetarian, and I live in Prto.", "-u", "ana", "--no-digest").code == 0
    assert holdfast("say", "I'm allergic to nuts.", "-u", "ana", "--no-digest").code == 0
    assert holdfast("say", "I'm allergic to shellfish.", "-u", "ana", "--no-digest").code == 0
    return holdfast


def values(holdfast: Holdfast, category: str, *more: str) -> list[str]:
    return [fact["value"] for fact in holdfast("facts", category, "-u", "ana", "--json", *more).data]


def test_a_sentence_is_remembered_like_one_that_was_said(holdfast: Holdfast) -> None:
    run = holdfast("remember", "I'm allergic to peanuts.", "-u", "ana")

    assert run.out.split() == ["allergy,", "allergic", "to", "peanuts", "new"]
    assert values(holdfast, "allergy") == ["peanuts"]


def test_an_address_is_set_by_hand(ana: Holdfast) -> None:
    run = ana("remember", "--category", "home", "--key", "lives_in", "--value", "Braga", "-u", "ana", "--json")

    assert (run.data["op"], run.data["fact"]["value"], run.data["previous"]["value"]) == ("replaced", "Braga", "Prto")
    assert values(ana, "home") == ["Braga"]


@pytest.mark.parametrize("half", [(), ("--category", "home"), ("--key", "lives_in", "--value", "Braga")])
def test_half_an_address_is_wrong_usage(holdfast: Holdfast, half: tuple[str, ...]) -> None:
    run = holdfast("remember", *half)

    assert (run.code, run.out) == (2, "")
    assert 'write holdfast remember "I eat fish."' in run.err


def test_an_invalid_value_is_refused_with_the_reason(ana: Holdfast) -> None:
    run = ana("remember", "--category", "identity", "--key", "age", "--value", "old", "-u", "ana", "--json")

    assert (run.code, run.error["code"]) == (1, "refused")
    assert "not-a-number" in run.error["message"]


@pytest.mark.parametrize(
    "name", ["home", "home lives_in", "home/lives_in", "Prto", "prto", "Lives in Prto.", "lives in"]
)
def test_a_fact_is_named_by_address_or_by_what_it_says(ana: Holdfast, name: str) -> None:
    run = ana("correct", name, "Porto", "-u", "ana")

    assert run.code == 0
    assert values(ana, "home") == ["Porto"]


def test_a_fact_is_named_by_its_id_or_the_beginning_of_it(ana: Holdfast) -> None:
    ids = {fact["value"]: fact["id"] for fact in ana("facts", "-u", "ana", "--json").data}

    assert ids["nuts"] in ana("facts", "-u", "ana", "--ids").out
    assert ana("correct", ids["nuts"], "peanuts", "-u", "ana").code == 0
    assert ana("correct", ids["shellfish"][:-1], "lobster", "-u", "ana").code == 0
    assert sorted(values(ana, "allergy")) == ["lobster", "peanuts"]


def test_an_ambiguous_name_lists_the_facts_that_it_means(ana: Holdfast) -> None:
    run = ana("correct", "allergy", "eggs", "-u", "ana")

    assert (run.code, run.out) == (2, "")
    assert "means 2 facts" in run.err
    for fact in ana("facts", "allergy", "-u", "ana", "--json").data:
        assert fact["id"] in run.err
    assert sorted(values(ana, "allergy")) == ["nuts", "shellfish"]


@pytest.mark.parametrize("command", [("correct", "{}", "eggs"), ("never-true", "{}"), ("forget", "{}", "--yes")])
def test_an_unknown_name_is_answered_with_the_nearest(ana: Holdfast, command: tuple[str, ...]) -> None:
    near = ana(*[part.format("shelfish") for part in command], "-u", "ana")
    far = ana(*[part.format("zzzzzz") for part in command], "-u", "ana", "--json")

    assert (near.code, far.code, far.error["code"]) == (1, 1, "no-fact")
    assert "did you mean 'shellfish'?" in near.err
    assert "--ids" in far.error["hint"]


@pytest.mark.parametrize("command", [("correct", "home", "Faro"), ("never-true", "home"), ("forget", "home", "--yes")])
def test_a_fact_of_another_user_is_not_found(ana: Holdfast, command: tuple[str, ...]) -> None:
    run = ana(*command, "-u", "bo", "--json")

    assert (run.code, run.error["code"]) == (1, "no-fact")
    assert values(ana, "home") == ["Prto"]


def test_a_correction_prints_an_undo_that_works(ana: Holdfast) -> None:
    run = ana("correct", "home", "Porto", "-u", "ana")
    undo = run.out.splitlines()[-1]
    corrected = values(ana, "home")
    again = ana(*undo.removeprefix("undo: holdfast ").split())

    assert run.out.splitlines()[0].split() == ["home,", "lives", "in", "Prto", "→", "Porto", "replaced"]
    assert (corrected, again.code, values(ana, "home")) == (["Porto"], 0, ["Prto"])


def test_a_fact_that_was_never_true_is_gone_until_it_is_restored(ana: Holdfast) -> None:
    run = ana("never-true", "nuts", "-u", "ana")
    without = values(ana, "allergy")
    ana("restore", "allergy", "-u", "ana")

    assert run.out.splitlines()[0].split() == ["allergy,", "allergic", "to", "nuts", "retracted"]
    assert (without, sorted(values(ana, "allergy"))) == (["shellfish"], ["nuts", "shellfish"])


def test_the_value_that_a_false_fact_replaced_is_active_again(ana: Holdfast) -> None:
    ana("say", "I moved to Faro.", "-u", "ana", "--no-digest")
    run = ana("never-true", "home", "-u", "ana")

    assert "home, lives in  Prto  active again" in run.out
    assert values(ana, "home") == ["Prto"]


def test_restoring_what_never_existed_is_an_error(ana: Holdfast) -> None:
    nothing, nobody = ana("restore", "home", "-u", "ana"), ana("restore", "fact_00000000000000000000", "-u", "ana")

    assert (nothing.code, nobody.code) == (1, 1)
    assert "error[no-fact]" in nothing.err
    assert "error[not-found]" in nobody.err


def test_history_shows_ids_that_restore_takes(ana: Holdfast) -> None:
    ana("correct", "home", "Porto", "-u", "ana")
    shown = ana("history", "home", "-u", "ana", "--ids").out
    past = next(fact["id"] for fact in ana("history", "home", "-u", "ana", "--json").data if fact["value"] == "Prto")

    assert past in shown
    assert "never true" in shown
    assert ana("restore", past, "-u", "ana").code == 0


def test_a_correction_of_one_subject_leaves_the_others(holdfast: Holdfast) -> None:
    holdfast("remember", "--category", "allergy", "--key", "allergic_to", "--value", "fish", "--subject", "luna")
    holdfast("remember", "--category", "allergy", "--key", "allergic_to", "--value", "fish", "--subject", "max")
    holdfast("correct", "fish", "chicken", "--subject", "luna")
    told = {fact["subject"]: fact["value"] for fact in holdfast("facts", "--json").data}

    assert told == {"luna": "chicken", "max": "fish"}


def test_facts_written_by_hand_are_no_conversation_to_choose_from(ana: Holdfast) -> None:
    ana("remember", "I like tea.", "-u", "ana")

    assert ana("context", "-u", "ana").code == 0
    assert "(by hand)" in ana("messages", "-u", "ana", "-c", "elsewhere").err


@pytest.mark.parametrize("command", [("correct", "home", "Faro"), ("remember", "I like tea."), ("restore", "home")])
def test_a_paused_memory_says_how_to_resume(ana: Holdfast, command: tuple[str, ...]) -> None:
    ana("correct", "home", "Porto", "-u", "ana")
    ana("pause", "-u", "ana")
    run = ana(*command, "-u", "ana")

    assert (run.code, run.out) == (1, "")
    if command[0] != "restore":  # a correction can be taken back to what was believed, pause or not
        assert "run `holdfast resume -u ana` first" in run.err


def test_corrections_are_what_the_library_sees(ana: Holdfast) -> None:
    ana("correct", "dietary", "vegan", "-u", "ana")

    with Memory("holdfast.db", embedder=None) as memory:
        assert [fact.text for fact in memory.user("ana").facts("dietary")] == ["Is vegan."]
