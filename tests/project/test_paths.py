"""A message takes a short way: few files between the door and the SQL."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import Memory

PACKAGE = Path(holdfast.__file__).parent
ASKED = "Where did we plan to go in May?"


@pytest.fixture
def memory(tmp_path):
    """A memory in a file, with a conversation long enough for summaries, facts and vectors."""
    with Memory(tmp_path / "chat.db") as opened:
        chat = opened.conversation("c", user="ana")
        for number in range(30):
            chat.record(f"In May we plan to visit town number {number}.", "Noted.")
        chat.record("I live in Porto.", "Noted.")
        opened.digest()
        yield opened


def files_of(call: Callable[[], object]) -> set[str]:
    """The files of the package whose functions *call* enters in this thread."""
    found: set[str] = set()

    def enter(frame, event, argument):
        if event == "call" and frame.f_code.co_name not in ("__eq__", "__hash__"):  # nobody reads those of a dataclass
            found.add(frame.f_code.co_filename)

    call()  # what is only done once is not on the way
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {Path(name).relative_to(PACKAGE).as_posix() for name in found if name.startswith(str(PACKAGE))}


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda m: m.conversation("c", user="ana").append({"role": "user", "content": "The weather is mild."}), 16),
        (lambda m: m.user("ana").search(ASKED), 21),
        (lambda m: m.conversation("c", user="ana").context(ASKED), 32),
    ],
    ids=["append", "search", "context"],
)
def test_the_way_from_the_door_to_the_sql_is_short(memory, call, most):
    files = files_of(lambda: call(memory))

    assert len(files) <= most, sorted(files)
