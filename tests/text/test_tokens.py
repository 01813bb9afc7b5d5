"""The token estimate: what it counts, and that the quick way to count it is exact."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.terms import count_tokens

WIDE = (
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
PIECE = re.compile(
    rf"(?P<wide>[{WIDE}])|(?P<latin>[A-Za-z]+)|(?P<digits>\d+)|(?P<word>[^\W\d_]+)|(?P<newline>\n+)|(?P<mark>\S)"
)


def by_definition(text: str) -> int:
    """The estimate, piece by piece."""
    total = 0
    for piece in PIECE.finditer(text):
        size = len(piece.group())
        total += {
            "wide": 1,
            "latin": math.ceil(size / 6),
            "digits": math.ceil(size / 3),
            "word": math.ceil(size / 2.5),
            "newline": 1,
            "mark": len(piece.group().encode()) // 3 + 1,
        }[piece.lastgroup or ""]
    return max(1, total) if text else 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),
        ("hello there", 2),
        ("extraordinary", 3),
        ("12345", 2),
        ("\n\n\n", 1),
        ("日本語", 3),
        ("서울에서", 4),
        ("привет", 3),
        ("😀", 2),
        ("a_b", 3),
    ],
)
def test_estimate(text, tokens):
    assert count_tokens(text) == tokens


@given(
    st.text(
        alphabet=st.sampled_from("aZbé ñß日本語한ก०٣½\n \t_.,!'\"<>😀🏽\u200b\x1c\u00a0\x85²Ⅷabcdefgh12345"),
        max_size=60,
    )
)
def test_quick_count_is_exact_where_scripts_mix(text):
    assert count_tokens(text) == by_definition(text)


@given(st.text(max_size=60))
def test_quick_count_is_exact(text):
    assert count_tokens(text) == by_definition(text)
