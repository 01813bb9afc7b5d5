"""In economy mode one call brings summary, episodes and facts of a chunk."""

from __future__ import annotations

import pytest

from holdfast.llm.protocol import Answer

from .talk import BULLETS, COMBINED, SUMMARY


def test_in_economy_mode_one_call_tells_all_of_a_chunk(world):
    here = world({"combined": [COMBINED]}, economy=True)
    here.memory.digest()

    assert here.calls("facts", "chunk_summary", "episodes", "combined") == ["combined"]
    assert here.chat.summaries()[0].themes == ("Bo", "ferritin")
    assert len(here.bullets()) == 3
    learned = {(f.category, f.key, f.value) for f in here.user.facts() if f.source.startswith("scripted")}
    assert ("goal", "wants_to", "bring Miso along in May") in learned
    assert ("medication", "iron", "starts tomorrow") not in learned  # below min_confidence


def test_in_economy_mode_higher_levels_cost_nothing(world):
    here = world({"combined": [COMBINED] * 3}, economy=True, chunks=3)
    here.memory.digest()

    assert here.calls("meta_summary") == []
    (high,) = here.chat.summaries(level=2)
    assert high.source == "rules 1"
    assert "ferritin" in high.text


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (f"{SUMMARY}\nEPISODES:\n{BULLETS}", ["read"]),
        (f"{SUMMARY}\nFACTS:\nNONE", ["episodes"]),
        (Answer(COMBINED[:-120], "m", finish="length"), ["read"]),
        (SUMMARY, ["episodes", "read"]),
    ],
)
def test_what_one_call_leaves_out_is_done_by_a_call_of_its_own(world, reply, left):
    here = world({"combined": [reply], "episodes": [BULLETS]}, economy=True)
    here.memory.digest()

    assert here.chat.summaries()[0].themes == ("Bo", "ferritin")
    asked = here.calls("facts", "episodes")
    assert sorted(asked) == sorted({"read": "facts", "episodes": "episodes"}[kind] for kind in left)
    assert here.jobs() == []


def test_a_combined_answer_that_cannot_be_used_is_tried_again(world):
    here = world({"combined": ["I cannot help with that.", COMBINED]}, economy=True)
    here.memory.digest()
    assert here.chat.summaries() == []

    here.later()
    assert here.chat.summaries()[0].source.startswith("scripted")
    assert here.calls("combined") == ["combined", "combined"]
