"""A rebuild calls the model once for a range: only its write is repeated when it meets another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.llm.protocol import Request
from holdfast.testing.model import ScriptedModel

from .talks import USER, opened, walked

ANSWERS = {"facts": "NONE", "episodes": "No facts to record"}


class InterruptedModel:
    """A model during each of whose calls something else happens."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, request: Request) -> str:
        self.meanwhile()
        return ANSWERS.get(request.layer, "SUMMARY: They walked along the river.")


def walked_and_whispered(path: Path) -> None:
    with opened(path) as memory:
        walked(memory)
        memory.conversation("other", user=USER).append(
            [{"role": "user", "content": f"The weather of day {day} was fine."} for day in range(40)]
        )


def forget_next(memory: Memory) -> Callable[[], object]:
    left = iter(range(1, 40))
    return lambda: memory.conversation("other", user=USER).forget(next(left))


@pytest.mark.parametrize("layer", ["summaries", "meta", "facts", "episodes"])
def test_an_erasure_elsewhere_during_the_call_repeats_the_write_and_not_the_call(tmp_path: Path, layer: str) -> None:
    walked_and_whispered(tmp_path / "a.db")
    answers = InterruptedModel()
    model = ScriptedModel(otherwise=answers)
    with opened(tmp_path / "a.db", llm=model) as memory:
        answers.meanwhile = forget_next(memory)
        report = memory.conversation("web-42", user=USER).rebuild(layer)

        assert report.errors == ()
        assert report.ranges > 0
        assert report.calls == len(model.asked) <= report.ranges


@pytest.mark.parametrize("layer", ["summaries", "facts", "episodes"])
def test_an_answer_about_messages_that_changed_meanwhile_is_discarded_and_not_asked_for_again(
    tmp_path: Path, layer: str
) -> None:
    walked_and_whispered(tmp_path / "a.db")
    answers = InterruptedModel()
    model = ScriptedModel(otherwise=answers)
    with opened(tmp_path / "a.db", llm=model) as memory:
        chat = memory.conversation("web-42", user=USER)
        seqs = iter(range(3, 9, 2))
        answers.meanwhile = lambda: chat.edit(next(seqs), "We stayed at home.")
        report = chat.rebuild(layer, start_seq=1, end_seq=10)

        assert len(model.asked) == 1
        assert [error.split(": ")[1] for error in report.errors] == ["conflict"]
        assert report.before == report.after == ()
        assert chat.summaries(1)[0].text != "They walked along the river."
