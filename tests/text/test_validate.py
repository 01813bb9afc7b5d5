"""What callers give is checked before anything is stored."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.text.validate import MAX_COUNT, checked_count


def test_a_number_is_refused_that_no_store_can_hold(memory: Memory) -> None:
    assert checked_count("limit", MAX_COUNT) == 2**53
    with pytest.raises(BadInput, match="start_seq must be 9007199254740992 at most"):
        memory.user("ana").remember("We met.", conversation="c", start_seq=2**63)
