"""The upstream's key is told to no client, not even when the upstream itself repeats it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.proxy.upstream import Mask, UpstreamServer

KEY = "sk-abab-ab"


@given(st.lists(st.sampled_from([b"s", b"sk-", b"ab", b"-ab", b"sk-abab-ab", b"x", b'"', b""]), max_size=30))
def test_a_key_is_masked_however_the_bytes_are_cut(pieces):
    mask = Mask(UpstreamServer("https://x", KEY))
    told = b"".join(mask.feed(piece) for piece in pieces) + mask.end()
    text = b"".join(pieces)
    assert told == text.replace(KEY.encode(), b"*" * len(KEY))
    assert len(told) == len(text)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_without_a_key_everything_goes_through(pieces):
    mask = Mask(UpstreamServer("https://x"))
    assert b"".join(mask.feed(piece) for piece in pieces) + mask.end() == b"".join(pieces)
