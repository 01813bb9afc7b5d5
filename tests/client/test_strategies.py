"""A strategy goes with a conversation over HTTP, as an object of the library or by its name."""

from __future__ import annotations

import httpx2
import pytest

from holdfast import Memory, strategies
from holdfast.client import Client
from holdfast.errors import BadInput


def sections(context) -> list[str]:  # type: ignore[no-untyped-def]
    return [section.name for section in context.sections if section.items]


@pytest.mark.parametrize("strategy", [strategies.Facts(2), "facts/2"])
def test_facts_and_the_last_two_turns_need_no_summary_over_http(library: Memory, memory: Client, strategy) -> None:  # type: ignore[no-untyped-def]
    user = f"facts-{type(strategy).__name__}"
    chat = memory.conversation("a", user=user, strategy=strategy)
    for text in ("I'm vegetarian.", *(f"Nice weather, day {n}." for n in range(40))):
        chat.record(text, "Indeed.")
    chat.end()
    context = chat.context("What can I eat?")

    assert "chunk" not in {job.kind for job in library.jobs() if job.user == user}
    assert sections(context) == ["facts", "recent"]
    assert len(context.section("recent").items) == 5
    assert sections(chat.context("What can I eat?", strategy="window/1")) == ["recent"]

    memory.conversation("a", user=user).record("And one more.", "Indeed.")
    assert "chunk" in {job.kind for job in library.jobs() if job.user == user}


def test_programs_in_other_languages_name_a_strategy_in_the_address_or_the_body(library: Memory, address: str) -> None:
    key = library.admin.keys.create("app").key
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as http:
        path = "/v1/users/other/conversations/a"
        for _ in range(3):
            body = {
                "messages": [{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Ah."}]
            }
            assert http.post(f"{path}/messages", params={"strategy": "facts/2"}, json=body).status_code == 201
        recent = [
            len(http.post(f"{path}/context", **asked).json()["sections"][-1]["items"])
            for asked in (
                {"params": {"strategy": "window/1"}, "json": {"query": "And?"}},
                {"json": {"query": "And?", "strategy": "window/2"}},
                {"json": {"query": "And?", "strategy": {"name": "window", "exchanges": 2}}},
            )
        ]
        wrong = http.post(f"{path}/messages", params={"strategy": "fact/2"}, json=body)

    assert recent == [3, 5, 5]
    assert (wrong.status_code, "did you mean facts?" in wrong.text) == (422, True)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("windows/3", "did you mean window"),
        ("window/0", "from 1 to"),
        ("window/three", "exchanges"),
        ("window/" + "9" * 400, "exchanges"),
        ("buffer/3", "has no size"),
        ("window,tokens=3", "has no tokens"),
        ("layered,side_by_side=perhaps", "on or off"),
        ("facts/2,memory_role=king", "memory_role"),
        ("", "there is no strategy"),
    ],
)
def test_a_name_that_says_no_strategy_is_refused_with_the_fix(library: Memory, memory: Client, name, says) -> None:  # type: ignore[no-untyped-def]
    for opened in (library, memory):
        with pytest.raises(BadInput, match=says):
            opened.conversation("a", user="ana", strategy=name)
