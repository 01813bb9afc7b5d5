"""A model summarizes chunks and levels and reads their episodes: what is written, and what happens when it fails."""

from __future__ import annotations

import threading

import pytest

from holdfast import Config, Memory
from holdfast.llm.protocol import Answer, ModelError
from holdfast.testing.model import ScriptedModel

from .talk import BULLETS, COMBINED, SUMMARY, TALK


def test_a_chunk_becomes_a_summary_and_episodes(world):
    here = world({"chunk_summary": [SUMMARY], "episodes": [BULLETS]})
    report = here.memory.digest()
    (summary,) = here.chat.summaries()

    assert summary.text == "They met Bo at Meko. The ferritin result is 12, and iron was recommended."
    assert summary.themes == ("Bo", "ferritin")
    assert summary.concerns == ("worried about the result",)
    assert summary.actions == ("user: starts iron tomorrow", "assistant: test again in six weeks")
    assert (summary.start_seq, summary.end_seq, summary.exchanges) == (1, 10, 5)
    assert summary.source.startswith("scripted:1 ")
    assert here.bullets() == {
        "First meeting with Bo at Meko over tteokbokki": [1],
        "Promised Bo to bring Miso along in May": [3],
        "Ferritin result: 12": [5],
    }
    assert all(fact.source.startswith("scripted:1 ") for fact in here.chat.episodes())
    assert (report.summaries, report.facts) == (1, 3)
    assert report.tokens > 200


def test_messages_that_a_model_cites_are_no_part_of_what_it_tells(world):
    summary = SUMMARY.replace("at Meko.", 'at Meko [1: "Bo and I met"].').replace("THEMES: Bo", "THEMES: Bo [1]")
    here = world(
        {"chunk_summary": [summary], "episodes": ['- First meeting with Bo at Meko over tteokbokki [1: "Bo"]']}
    )
    here.memory.digest()
    (made,) = here.chat.summaries()

    assert made.text.startswith("They met Bo at Meko. ")
    assert made.themes[0] == "Bo"
    assert here.bullets() == {"First meeting with Bo at Meko over tteokbokki": [1]}


def test_an_episode_quotes_the_user_and_keeps_its_day(world):
    here = world({"episodes": ["- Met Bo at Meko, over tteokbokki [1]"]})
    here.memory.digest()
    (fact,) = here.chat.episodes()

    assert fact.evidence[0].quote == TALK[0][0]
    assert fact.evidence[0].role == "user"
    assert (fact.lifetime, fact.category) == ("event", "episode")
    assert (here.clock() - fact.valid_from).days == 1  # "yesterday"


def test_a_corrected_episode_stays_an_episode_of_its_day_and_conversation(world):
    here = world({"episodes": ["- Met Bo at Meko, over tteokbokki [1]"]})
    here.memory.digest()
    (wrong,) = here.chat.episodes()
    here.clock.advance(seconds=40 * 86_400)
    here.user.correct(wrong.id, value="Met Bo at Meko, over bibimbap")
    (fact,) = here.chat.episodes()

    assert (fact.text, fact.kind, fact.valid_from) == ("Met Bo at Meko, over bibimbap", "episode", wrong.valid_from)
    assert {(e.conversation, e.seq) for e in wrong.evidence} < {(e.conversation, e.seq) for e in fact.evidence}
    assert fact.id in {one.id for one in here.chat.learned()}
    here.chat.forget(1)
    assert [one.text for one in here.user.facts(kind="episode")] == ["Met Bo at Meko, over bibimbap"]
    assert here.memory.doctor().ok


def test_each_bullet_is_found_on_its_own(world):
    here = world({"episodes": [BULLETS]})
    here.memory.digest()

    assert here.user.search("tteokbokki", kinds=("fact",))[0].text == "First meeting with Bo at Meko over tteokbokki"
    assert "Ferritin result: 12" in [hit.text for hit in here.user.search("ferritin", kinds=("fact",))][:2]


def test_summary_episodes_and_facts_of_a_chunk_are_one_call(world):
    here = world({"combined": [COMBINED]})
    here.memory.digest()

    assert len(here.bullets()) == 3
    assert ("goal", "wants_to") in {(fact.category, fact.key) for fact in here.user.facts()}
    assert here.calls("facts", "chunk_summary", "episodes", "combined") == ["combined"]


def test_facts_that_were_read_early_are_not_read_again_with_the_chunk(world):
    rows = "home,lives_in,Faro,0.9,,set,asserted,state,{},my new address is in Faro"
    here = world(chunks=0)  # one message: "hello again"
    here.model.say("facts", rows.format(2))
    here.chat.record("I gave up the old flat, my new address is in Faro.", "Nice!")
    here.memory.digest()
    for text, reply in TALK:
        here.chat.record(text, reply)
    here.model.say("combined", f"{SUMMARY}\nEPISODES:\n{BULLETS}\nFACTS:\n{rows.format(2).replace('Faro', 'Rome', 1)}")
    here.chat.record("I have to go.", "Good luck.")
    here.memory.digest()
    (request,) = here.model.requests("combined")

    assert '"facts: only of messages 4-11"' in request.text
    assert [fact.value for fact in here.user.facts() if fact.key == "lives_in"] == ["Faro"]


def test_a_chunk_of_courtesies_costs_no_call(world):
    here = world(chunks=0)
    here.chat.record("Hello!", "Hi there!")
    here.chat.record("Thanks, bye!", "Bye!")
    here.chat.end()
    here.memory.digest()

    assert here.model.asked == []
    assert here.chat.summaries()[0].source == "rules 1"


@pytest.mark.parametrize(
    "nothing",
    ["No facts to record", "no facts to record.", "기록할 사실 없음", "Keine Fakten", "无", "- none", "NONE", "ok"],
)
def test_nothing_to_record_is_not_saved_and_not_asked_again(world, nothing):
    here = world({"episodes": [nothing]})
    here.memory.digest()
    here.later()

    assert here.bullets() == {}
    assert here.calls("episodes", "combined") == ["combined"]
    assert here.jobs() == []


def test_bullets_that_users_did_not_say_are_refused_and_shown(world):
    here = world(
        {"episodes": ["- Iron should be taken for six weeks [8]\n- Met Zoe at Meko [1]\n- Ferritin is 99 [5]"]}
    )
    report = here.memory.digest()

    assert here.bullets() == {}
    assert report.rejected == 3
    reasons = {refused.reason.partition(":")[0] for refused in here.user.rejected()}
    assert reasons == {"not-supported", "name-not-said", "number-not-said"}


def test_three_summaries_become_one_of_the_next_level(world):
    told = """SUMMARY: Three weeks of iron after a ferritin result of 12.
THEMES: ferritin; Bo
PROGRESSION: From a low result to a better mood.
CONNECTIONS: Meko is where both Bo and the worries were spoken of.
CONCERNS: low ferritin
ACTIONS: user: takes iron"""
    here = world({"meta_summary": [told]}, chunks=3)
    here.memory.digest()
    (high,) = here.chat.summaries(level=2)

    assert high.text == "Three weeks of iron after a ferritin result of 12.\nFrom a low result to a better mood."
    assert (high.themes, high.concerns) == (("ferritin", "Bo"), ("low ferritin",))
    assert (high.start_seq, high.end_seq, len(high.children)) == (1, 30, 3)
    assert high.source.startswith("scripted:1 ")
    (request,) = here.model.requests("meta_summary")
    assert request.text.count("messages ") == 3


GERMAN = "SUMMARY: " + "Der Nutzer war gestern mit einer Freundin im Restaurant und hat dort lange geredet. " * 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I'm sorry, but I can't help with that.", "bad-answer: nothing of the answer can be used"),
        ("", "bad-answer: the model answered with nothing"),
        (Answer("SUMMARY: They met at", "m", finish="length"), "bad-answer: nothing of the answer can be used"),
        (Answer("no", "m", finish="refusal"), "bad-answer: the model refused to answer"),
        (GERMAN, "bad-answer: nothing of the answer can be used"),
        (ModelError("no connection"), "model: no connection"),
    ],
)
def test_an_answer_that_cannot_be_used_is_a_job_with_its_reason(world, reply, reason):
    here = world({"combined": [reply, COMBINED]})
    report = here.memory.digest()

    assert report.failed == 1
    assert here.chat.summaries() == []
    ((kind, key, said),) = here.jobs()
    assert (kind, key) == ("chunk", "")
    assert said.startswith(reason)

    here.later()
    assert here.chat.summaries()[0].themes == ("Bo", "ferritin")
    assert len(here.bullets()) == 3
    assert here.jobs() == []


@pytest.mark.parametrize("summary", ["I'm sorry, but I can't help with that.", "", GERMAN])
def test_a_summary_that_cannot_be_used_is_asked_for_alone_and_the_rest_is_kept(world, summary):
    here = world({"combined": [f"{summary}\nEPISODES:\n{BULLETS}\nFACTS:\nNONE"], "chunk_summary": [SUMMARY]})
    here.memory.digest()

    assert here.chat.summaries()[0].themes == ("Bo", "ferritin")
    assert len(here.bullets()) == 3
    assert here.calls("combined", "chunk_summary", "episodes") == ["combined", "chunk_summary"]
    assert here.jobs() == []


def test_a_chunk_that_is_refused_again_and_again_is_told_by_the_rules_and_waits_as_a_job(world):
    here = world({"chunk_summary": ["No"] * 6}, job_attempts=3)
    for _ in range(4):
        here.later()
    (summary,) = here.chat.summaries()

    assert summary.source == "rules 1"
    assert "Meko" in summary.text
    ((kind, key, reason),) = here.jobs()
    assert (kind, key) == ("summary", "1-10")
    assert reason.startswith("bad-answer: the answer holds no summary")

    here.later()
    here.later()
    (dead,) = here.memory.jobs("dead")
    here.model._left["chunk_summary"] = [SUMMARY]
    here.memory.retry(dead.id)
    here.memory.digest()
    (summary,) = here.chat.summaries()
    assert (summary.themes, summary.version) == (("Bo", "ferritin"), 2)
    assert here.jobs() == []


def test_a_level_that_is_refused_again_and_again_is_told_by_the_rules_and_waits_as_a_job(world):
    here = world({"meta_summary": ["No"] * 3 + [SUMMARY]}, chunks=3, job_attempts=3)
    for _ in range(4):
        here.later()
    (high,) = here.chat.summaries(level=2)

    assert high.source.startswith("scripted:1 ")
    assert high.version == 2
    assert here.jobs() == []


def test_episodes_that_fail_wait_alone(world):
    here = world({"chunk_summary": [SUMMARY], "episodes": ["I'm sorry, but I can't do that."] * 9}, job_attempts=3)
    report = here.memory.digest()

    assert (report.summaries, report.failed) == (1, 2)
    ((kind, key, reason),) = here.jobs()
    assert (kind, key) == ("episodes", "1-10")
    assert reason.startswith("bad-answer: the model refused")

    here.later()
    here.later()
    (dead,) = here.memory.jobs("dead")
    assert dead.reason.startswith("bad-answer")

    here.model._left["episodes"] = [BULLETS]
    here.memory.retry(dead.id)
    here.memory.digest()
    assert len(here.bullets()) == 3
    assert here.jobs() == []


def test_what_is_cut_off_is_kept_up_to_the_last_whole_bullet(world):
    cut = Answer(BULLETS[:-6], "m", finish="length")
    here = world({"combined": [SUMMARY], "episodes": [cut]})
    here.memory.digest()

    assert list(here.bullets()) == [
        "First meeting with Bo at Meko over tteokbokki", "Promised Bo to bring Miso along in May"
    ]  # fmt: skip


def test_secrets_are_shown_to_nobody_and_topics_leave_nothing(world):
    here = world(chunks=0)
    here.user.never_remember("tteokbokki")
    here.model.say("episodes", "- Met Bo at Meko over tteokbokki [2]\n- My card is 4242 4242 4242 4242 [4]")
    for text, reply in [TALK[0], ("My card is 4242 4242 4242 4242", "ok"), *TALK[2:]]:
        here.chat.record(text, reply)
    here.chat.end()
    here.memory.digest()

    assert here.bullets() == {}
    assert all("4242" not in request.text for request in here.model.asked)
    assert here.calls("combined")


def test_an_erasure_during_the_calls_wins(world):
    here = world({"chunk_summary": [SUMMARY], "episodes": [BULLETS]})

    def answer(request):
        here.chat.forget(1)
        return SUMMARY

    here.model._left["chunk_summary"] = []
    here.model._functions["chunk_summary"] = answer
    here.memory.digest()

    assert here.chat.summaries() == []
    assert here.bullets() == {}
    here.model._functions.clear()
    here.chat.end()
    here.later()
    assert len(here.chat.summaries()) == 1
    assert all("Meko" not in text for text in here.bullets())


def test_no_transaction_is_open_while_a_model_answers(world):
    here = world()

    def answer(request):
        here.memory.conversation("b", user="bo").append({"role": "assistant", "content": "written meanwhile"})
        here.chat.append({"role": "assistant", "content": "and here"})
        return SUMMARY

    here.model._functions["chunk_summary"] = answer
    here.memory.digest(timeout_s=20)

    assert here.chat.summaries()[0].themes == ("Bo", "ferritin")


def test_users_are_served_side_by_side_and_a_conversation_in_order(tmp_path):
    """Two users's calls meet at a barrier; two calls for one conversation and layer never run at once."""
    both, lock = threading.Barrier(2, timeout=20), threading.Lock()
    running: list[str] = []
    twice: list[str] = []
    met = threading.Event()

    def answer(request):
        chat = request.text.split("chat ")[1][:1]
        with lock:
            if chat in running:
                twice.append(chat)
            running.append(chat)
        if not met.is_set():
            both.wait()
            met.set()
        with lock:
            running.remove(chat)
        return "NONE"

    model = ScriptedModel({"facts": answer})
    config = Config(workers=3, chunk_exchanges=50, chunk_messages=200)  # what closes no chunk is read by one job alone
    with Memory(tmp_path / "a.db", embedder=None, llm=model, background=True, config=config) as memory:
        for turn in range(20):
            for user in ("a", "b"):
                memory.conversation("c", user=user).record(f"I gave up on number {turn} in chat {user}", "ok")
        memory.digest()

        assert met.is_set()
        assert twice == []


def test_a_users_own_words_instruct_the_next_summary(world):
    here = world({"chunk_summary": [SUMMARY]})
    here.user.prompts.set("chunk_summary", "Sum up like a pirate.")
    here.memory.digest()
    (request,) = here.model.requests("combined")

    assert "For the summary: Sum up like a pirate." in request.system
    assert "THEMES" in request.system
    assert here.chat.summaries()[0].source == f"scripted:1 {request.prompt}"
