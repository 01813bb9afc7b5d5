"""Answers of a model from memory, from everything and from nothing; and their verdicts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.bench.answers import ARMS, BY_TYPE, SOUND, TRIES, AnswerRun, build_answer_report, format_answer_table
from holdfast.bench.datasets import load_benchmark
from holdfast.bench.retrieval import RetrievalRun, RunState, describe_run, limit_questions
from holdfast.cli import main
from holdfast.llm.protocol import ModelError
from holdfast.testing.model import ModelServer, ScriptedModel, ServerAnswer
from holdfast.text.render import parse_blocks, parse_line

TINY = load_benchmark("tiny", [])
GOLD = {q.question: q for s in TINY.samples for q in s.questions}


def words(text):
    return {word.strip(".,;:\"'()[]").lower() for word in text.split()} - {"the", "a", "of", "in", "was", "is", ""}


def honest(request):
    """Knows what is right, and says it when its rarest words stand in what it is shown; judges by equality."""
    if "right_answer" in request.text:
        told = dict(parse_blocks(request.text))
        return "CORRECT" if told["answer"] == told["right_answer"] else "WRONG"
    shown, _, asked = request.text.rpartition("Question: ")
    wanted = GOLD[parse_line(asked)]
    evidence = {line.id: line.text for s in TINY.samples for line in s.lines}
    seen = wanted.evidence and all(words(evidence[one]) <= words(shown) for one in wanted.evidence)
    return wanted.answer if seen else "No information available."


def run(folder: Path, model, *, benchmark=TINY, **options):
    """Everything found and answered; the state stays in *folder*."""
    state = RunState(folder, describe_run(benchmark, None))
    with RetrievalRun(benchmark, state, embedder=None) as asking:
        asking.fill()
        answering = AnswerRun(asking, state, model, wait=lambda _: None, **options)
        return answering.about(), list(answering.answers())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model = ScriptedModel({"chat": honest})
    return *run(tmp_path_factory.mktemp("whole"), model), model


def test_same_model_answers_from_memory_from_everything_and_from_nothing(whole):
    _, answered, model = whole
    report = build_answer_report(TINY, answered, {})
    strict = {arm: report["arms"][arm]["overall"]["strict"]["value"] for arm in ARMS}

    assert len(answered) == 32
    assert strict["full context"] == 1.0
    assert strict["no memory"] == pytest.approx(4 / 32)  # those that nobody can answer
    assert strict["no memory"] < strict["holdfast"] <= 1.0
    assert report["shown_tokens"]["no memory"] == 0
    # 32 × 3 answers; a verdict of two judges on each but the four that a rule judges
    assert len(model.asked) == 96 + 28 * 3 * 2


def test_all_arms_are_told_the_same_and_memory_within_its_budget(tmp_path):
    model = ScriptedModel({"chat": honest})
    _, answered = run(tmp_path, model, budget_tokens=300, benchmark=limit_questions(TINY, 4))
    systems = {request.system for request in model.asked if "right_answer" not in request.text}

    assert len(systems) == 1
    assert all(
        one.shown_tokens["holdfast"] <= 330 for one in answered
    )  # the headings of the text are not in the budget
    assert any(one.shown_tokens["full context"] > 330 for one in answered)


def test_report_holds_every_instruction_word_for_word(whole):
    who, _, model = whole

    assert {*who["judge_prompts"].values(), who["answer_prompt"]} == {request.system for request in model.asked}
    assert (who["model"], who["judge"]) == ("scripted:1", "scripted:1")


def test_another_model_may_judge(tmp_path):
    model, judge = ScriptedModel({"chat": honest}), ScriptedModel({"chat": lambda _: "WRONG"}, name="scripted:2")
    _, answered = run(tmp_path, model, judge=judge, benchmark=limit_questions(TINY, 2))

    assert {request.text.count("right_answer") > 0 for request in judge.asked} == {True}
    assert all("right_answer" not in request.text for request in model.asked)
    assert {row["strict"] for one in answered for row in one.figures.values()} == {0.0}


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from holdfast.testing.model import ScriptedModel
from test_answering import TINY, honest, run

left = int(sys.argv[2])
def dying(request):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return honest(request)

run(Path(sys.argv[1]), ScriptedModel({"chat": dying}), parallel=1)
"""


@pytest.mark.parametrize("calls", [0, 50, 263])
def test_killed_run_goes_on_and_asks_nothing_twice(tmp_path, whole, calls):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(calls), str(Path(__file__).parent)],
        env=os.environ,
        check=False,
    )
    model = ScriptedModel({"chat": honest})
    _, answered = run(tmp_path, model)

    assert done.returncode == -signal.SIGKILL
    # A verdict whose second figure was not written yet is asked again, nothing else.
    assert len(model.asked) == len(whole[2].asked) - calls
    assert [one.figures for one in answered] == [one.figures for one in whole[1]]


def test_failure_that_may_pass_is_tried_again(tmp_path):
    failures = [ModelError("busy", retry_after_s=1.0)] * (TRIES - 1)
    model = ScriptedModel({"chat": failures}, otherwise=honest)
    _, answered = run(tmp_path, model, benchmark=limit_questions(TINY, 1), parallel=1)

    assert not answered[0].failed
    assert answered[0].answers["full context"] == answered[0].question.answer


def test_what_stays_unanswered_counts_as_wrong_and_is_asked_again_by_the_next_run(tmp_path):
    one = limit_questions(TINY, 1)
    model = ScriptedModel({"chat": lambda _: ModelError("busy")})
    _, answered = run(tmp_path, model, benchmark=one, parallel=1)
    report = build_answer_report(one, answered, {})

    assert len(model.asked) == 3 * TRIES
    assert set(report["failed"]["holdfast"].values()) == {"busy"}
    assert report["arms"]["holdfast"]["overall"]["strict"]["value"] == 0.0

    _, again = run(tmp_path, ScriptedModel({"chat": honest}), benchmark=one)
    assert not again[0].failed


def test_verdict_that_cannot_be_read_is_a_failure_not_a_zero_in_silence(tmp_path):
    model, judge = ScriptedModel({"chat": honest}), ScriptedModel({"chat": lambda _: "hm"}, name="scripted:2")
    _, answered = run(tmp_path, model, judge=judge, benchmark=limit_questions(TINY, 1))

    assert "nothing could be read" in answered[0].failed["holdfast"]


def test_failure_that_stays_ends_the_run(tmp_path):
    with pytest.raises(ModelError, match="wrong key"):
        run(tmp_path, ScriptedModel({"chat": lambda _: ModelError("wrong key", transient=False)}))


def test_figures_stand_also_without_keys_that_are_wrong(whole):
    _, answered, _ = whole
    wrong = {"flat/q1": "typo", "garden/q1": "typo"}
    report = build_answer_report(TINY, answered, wrong)

    assert report["known_wrong"] == wrong
    assert report["arms"]["holdfast"][SOUND]["strict"]["n"] == 30
    assert any(line.startswith(SOUND) for line in format_answer_table(report))


def test_longmemeval_has_its_three_figures(whole):
    """Overall with abstention, the mean of the types, and abstention alone."""
    _, answered, _ = whole
    rows = [replace(one, figures={arm: {"correct": one.figures[arm]["strict"]} for arm in ARMS}) for one in answered]
    report = build_answer_report(replace(TINY, name="longmemeval"), rows, {})["arms"]["no memory"]

    assert report["overall"]["correct"]["n"] == 32
    assert report["abstention"]["correct"]["value"] == 1.0
    assert report[BY_TYPE]["correct"]["value"] == 0.0
    assert report["overall"]["correct"]["value"] == pytest.approx(4 / 32)


def test_command_answers_over_http_and_shows_it(tmp_path, monkeypatch, capsys):
    """The same door as everywhere: ``--llm openai:…``, here with a server on this machine."""
    monkeypatch.chdir(tmp_path)

    def serve(asked):
        return ServerAnswer("CORRECT" if "right_answer" in asked.text else "No information available.")

    with ModelServer(serve) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        args = ["bench", "--no-embedder", "--limit", "2", "--llm", "openai:stub", "--report", "r.json"]
        code = main(args)

    report = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert code == 0
    assert "judged by openai:stub" in capsys.readouterr().out
    assert report["answers"]["arms"]["no memory"]["overall"]["generous"]["value"] == 1.0


def test_command_shows_what_models_are_told(capsys):
    assert main(["bench", "--prompts"]) == 0
    assert "Give one sentence of reasons" in capsys.readouterr().out
