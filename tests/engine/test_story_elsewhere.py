"""The main path once more through every other door: awaited, and over HTTP by the client, sync and async."""

from __future__ import annotations

import pytest

from holdfast.testing.fakes import HashEmbedder

from . import test_story
from .elsewhere import DOORS, opened

# What these look at is inside of the library, or there is no second process of it.
WITHIN = {
    "test_cheap_work_is_done_before_what_takes_long",
    "test_history_returns_after_closing",
    "test_background_threads_leave_a_statement_to_the_call_that_made_it",
    "test_background_threads_do_the_work_by_themselves",
    "test_a_failing_job_is_a_state_with_a_reason_then_a_dead_letter",
    "test_a_closed_memory_says_so",
    "test_options_that_do_not_exist_are_refused",
}

chat = test_story.chat


@pytest.fixture(params=DOORS)
def memory(request, clock, served):
    with opened(request.param, served, embedder=HashEmbedder(), clock=clock) as door:
        yield door


def test_what_is_left_out_is_there():
    told = {name for name in vars(test_story) if name.startswith("test_")}
    assert told > WITHIN
    assert len(told - WITHIN) > 15


for _name, _test in list(vars(test_story).items()):
    if _name.startswith("test_") and _name not in WITHIN:
        globals()[_name] = _test
