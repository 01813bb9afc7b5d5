"""Where chunks end, as tables, and what no sequence of messages can break."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.clock import to_ms
from holdfast.config import Config
from holdfast.digest.chunk import LONG_EXCHANGE, RESULT_PATIENCE_MESSAGES, Chunk, find_closed_chunks, is_small_talk
from holdfast.types import Message

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
CONFIG = Config(chunk_tokens=1)
REAL = Config(chunk_tokens=600)  # the default; other tests talk in few words
HOURS = 60


def script(text: str) -> list[Message]:
    """
    Messages from words: ``u`` user, ``a`` assistant, ``s`` system, ``ana:`` a user of that name,
    ``a!x,y`` an assistant that calls tools x and y, ``t!x`` the result of x, ``+400`` minutes pass.
    A minute passes before each message in any case.
    """
    messages: list[Message] = []
    at = MONDAY
    roles = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    for word in text.split():
        if word.startswith("+"):
            at += timedelta(minutes=int(word))
            continue
        at += timedelta(minutes=1)
        letter, _, ids = word.partition("!")
        name = letter[:-1] if letter.endswith(":") else None
        meta: dict[str, object] = {}
        if ids and letter == "a":
            meta["tool_calls"] = [{"id": ident, "type": "function"} for ident in ids.split(",")]
        elif ids:
            meta["tool_call_id"] = ids
        messages.append(
            Message("user" if name else roles[letter], "words", name=name, at=at, seq=len(messages) + 1, meta=meta)
        )
    return messages


def ends(messages: list[Message], config: Config = CONFIG, **kwargs: int) -> list[int]:
    return [chunk.end_seq for chunk in find_closed_chunks(messages, config, **kwargs)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("u a " * 5, [], id="ten messages wait for the next exchange"),
        pytest.param("u a " * 5 + "u", [10], id="the sixth exchange closes five"),
        pytest.param("u a " * 4 + "u a a a u", [12], id="an exchange is never cut for the count"),
        pytest.param("u u u a " * 3 + "u", [12], id="several messages in a row are one turn"),
        pytest.param("s " + "u a " * 5 + "u", [11], id="system messages count as messages"),
        pytest.param("a " + "u a " * 5 + "u", [11], id="a greeting belongs to the first exchange"),
        pytest.param("ana: bo: " * 5 + "ana:", [10], id="two people"),
        pytest.param("ana: bo: bo: ana: ana: " * 2 + "bo: ana: bo:", [11], id="two people who write in bursts"),
        pytest.param("ana: bo: cy: " * 4, [10], id="a group: whoever speaks after a reply opens an exchange"),
        pytest.param("u a u a u a +480 u a", [6], id="eight hours of silence close what is half full"),
        pytest.param("u a u a +1500 u a u a u a u", [10], id="no silence of a day closes less than half"),
        pytest.param("u a u a +10000 u a u a u a u", [10], id="nor one of six days"),
        pytest.param("u a u a +10080 u a u a", [4], id="a week closes a first chunk, however short"),
        pytest.param("u a " * 5 + "u a +10080 u a u a", [10], id="and no rest behind another chunk"),
        pytest.param("u a u a u +400 a u a", [5], id="a late answer opens the next chunk"),
        pytest.param("u a " * 4 + "u u +400 a u", [10], id="a silence closes what is full within an exchange"),
        pytest.param("u a u a u a +350 u a", [], id="a short silence closes nothing"),
    ],
)
def test_boundaries(text: str, expected: list[int]) -> None:
    assert ends(script(text)) == expected


def test_chunks_follow_one_another_and_count_their_exchanges() -> None:
    assert find_closed_chunks(script("u a " * 11), CONFIG) == [Chunk(1, 10, 5), Chunk(11, 20, 5)]


def test_exchanges_close_a_chunk_before_its_messages_do() -> None:
    config = Config(chunk_messages=100, chunk_exchanges=5)

    assert find_closed_chunks(script("u a " * 6), config) == [Chunk(1, 10, 5)]


def sized(text: str, tokens: int) -> list[Message]:
    """The same script with messages of about so many tokens each."""
    return [replace(message, content="word " * tokens) for message in script(text)]


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        pytest.param("u a " * 6, 60, [10], id="ten messages of sixty tokens are a chunk"),
        pytest.param("u a " * 8, 30, [], id="short messages go on"),
        pytest.param("u a " * 12, 30, [20], id="until they are worth a summary"),
        pytest.param("u a " * 18, 2, [30], id="or are thirty"),
        pytest.param("u a " * 6, 800, [10], id="of long messages only what a model is shown counts"),
        pytest.param("u a u a u a +480 u a", 60, [6], id="eight hours of silence close what is worth a summary"),
        pytest.param("u a u a u a +480 u a", 20, [6], id="and a first chunk however short"),
        pytest.param("u a " * 5 + "u a u a u a +480 u a", 60, [10, 16], id="another when it is worth a summary"),
        pytest.param("u a " * 20 + "+480 u a", 7, [30], id="a short rest behind another chunk goes on"),
    ],
)
def test_chunks_close_by_tokens_as_well_as_by_messages(text: str, tokens: int, expected: list[int]) -> None:
    assert ends(sized(text, tokens), REAL) == expected


def test_few_long_messages_are_a_chunk_where_a_model_is_shown_all_of_them() -> None:
    wide = replace(REAL, message_char_limit=8_000, reply_char_limit=8_000)

    assert ends(sized("u a " * 4, 800), wide) == [4]


@pytest.mark.parametrize(
    ("goodbye", "expected"),
    [
        ("Thanks, bye!", [12]),
        ("Ok, thank you so much! Good night!", [12]),
        ("Danke dir, tschüss!", [12]),
        ("Thanks, but when does the train leave?", [10]),
        ("Thanks. My sister comes on Friday.", [10]),
    ],
)
def test_a_farewell_belongs_to_the_chunk_that_it_closes(goodbye: str, expected: list[int]) -> None:
    messages = script("u a " * 5 + "u a u a")
    messages[10] = replace(messages[10], content=goodbye)

    assert ends(messages) == expected


def test_the_end_closes_no_small_rest_after_another_chunk() -> None:
    """Three messages of farewell are shown as they are, and are no chunk of their own."""
    messages = sized("u a " * 5 + "u a u", 60)
    messages[10:] = [replace(message, content="fine then") for message in messages[10:]]

    assert ends(messages, REAL, ended_seq=13) == [10]
    assert ends(sized("u a", 2), REAL, ended_seq=2) == [2]


def test_a_greeting_waits_for_what_it_greets_however_long_the_silence() -> None:
    messages = script("u a +20000 u a")
    messages[:2] = [replace(message, content="Hi there, thanks!") for message in messages[:2]]

    assert ends(messages) == []


def test_a_visit_in_which_the_user_only_greets_is_never_closed_by_silence() -> None:
    messages = script("a u a +20000 u a")
    messages[1] = replace(messages[1], content="Hi there!")

    assert ends(messages) == []


def test_a_visit_whose_first_message_was_erased_is_closed_by_silence() -> None:
    messages = script("u a u a +20000 u a")[2:]

    assert ends(messages, first=True) == [4]
    assert ends(messages) == []


def test_undated_messages_know_no_silence() -> None:
    messages = [Message(m.role, m.content, seq=m.seq) for m in script("u a u a u a +90000 u a")]

    assert ends(messages, now_ms=to_ms(MONDAY + timedelta(days=99))) == []


class TestTheEnd:
    def test_everything_up_to_the_mark_is_closed_however_small(self) -> None:
        assert find_closed_chunks(script("u a"), CONFIG, ended_seq=2) == [Chunk(1, 2, 1)]

    def test_the_mark_parts_two_talks(self) -> None:
        assert ends(script("u a u a " + "u a " * 5 + "u"), ended_seq=4) == [4, 14]

    def test_an_old_mark_closes_nothing(self) -> None:
        """The messages handed over start after what was closed by it."""
        assert ends(script("u a u a")[2:], ended_seq=2) == []


class TestTheClock:
    @pytest.mark.parametrize(
        ("text", "hours", "expected"),
        [
            ("u a u a u", 6, [5]),
            ("u a u a u", 5.9, []),
            ("u a " * 5, 6, [10]),
            ("u a u a", 48, []),
            ("u a " * 5 + "u a u a", 48, [10]),
        ],
    )
    def test_a_silence_that_has_lasted_closes_what_is_half_full(
        self, text: str, hours: float, expected: list[int]
    ) -> None:
        messages = script(text)
        last = messages[-1].at
        assert last is not None

        assert ends(messages, now_ms=to_ms(last + timedelta(hours=hours))) == expected

    def test_calls_that_wait_for_results_outlast_it(self) -> None:
        """A result may come the next day, after somebody has approved the call."""
        assert ends(script("u a u a u a!x"), now_ms=to_ms(MONDAY + timedelta(days=2))) == []


class TestToolCalls:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("u a u a u a u a u a!x u t!x a u", [13], id="a user who interrupts"),
            pytest.param("u a " * 4 + "u a!x,y u t!y u t!x a u", [15], id="two calls, results in any order"),
            pytest.param("u a u a u a!x +900 t!x a u a u", [10], id="a result after a night"),
            pytest.param("u a u a u a!x +1900 u a", [6], id="no result after a day"),
            pytest.param("u a " * 4 + "u a!x u a u a u", [14], id="a result that never comes is waited for a little"),
            pytest.param("u a!x " * 11, [10, 20], id="results that are never recorded"),
        ],
    )
    def test_are_never_parted_from_their_results(self, text: str, expected: list[int]) -> None:
        assert ends(script(text)) == expected

    def test_calls_without_ids_are_paired_in_order(self) -> None:
        messages = script("u a u a u a u a u a!x u t!x a u")
        bare = [
            Message(m.role, m.content, at=m.at, seq=m.seq, meta={"tool_calls": [{}]} if "tool_calls" in m.meta else {})
            for m in messages
        ]

        assert ends(bare) == ends(messages) == [13]

    @pytest.mark.parametrize("meta", [{"tool_calls": "x"}, {"tool_calls": [1, None]}, {"tool_calls": {"id": 1}}])
    def test_broken_meta_is_no_call(self, meta: dict[str, object]) -> None:
        messages = [Message("assistant", "", seq=1, meta=meta), *script("u a " * 5 + "u a")[1:]]

        assert ends(messages) == [10]

    def test_a_very_long_exchange_closes_between_two_groups(self) -> None:
        messages = script("u " + "a!x t!x " * 60)
        chunks = find_closed_chunks(messages, CONFIG)

        assert chunks == [Chunk(1, 41, 1), Chunk(42, 81, 0)]

    def test_calls_that_always_overlap_cannot_keep_a_chunk_open(self) -> None:
        chain = " ".join(f"a!c{n} t!c{n - 1}" for n in range(1, 200))

        assert ends(script("u a!c0 " + chain))[0] <= 2 * LONG_EXCHANGE * 10 + 1

    def test_orphan_results_cannot_keep_a_chunk_open(self) -> None:
        assert ends(script("u a!x " + "t!other " * 100))[0] <= LONG_EXCHANGE * 10 + RESULT_PATIENCE_MESSAGES


WORDS = st.sampled_from(
    ["u", "a", "s", "ana:", "bo:", "cy:", "a!x", "a!y", "a!x,y", "t!x", "t!y", "t!z", "+400", "+200"]
)
TALKS = st.lists(WORDS, max_size=150).map(lambda words: script(" ".join(words)))
CONFIGS = st.builds(
    Config,
    chunk_messages=st.integers(10, 14),
    chunk_tokens=st.integers(1, 30),
    chunk_exchanges=st.integers(5, 10),
    chunk_gap_minutes=st.just(360),
)


@given(TALKS, CONFIGS, st.data())
@settings(max_examples=150, deadline=None)
def test_a_boundary_never_moves_when_more_is_said(messages: list[Message], config: Config, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(messages)))
    before, after = find_closed_chunks(messages[:size], config), find_closed_chunks(messages, config)

    assert after[: len(before)] == before


@given(TALKS, CONFIGS, st.data())
@settings(max_examples=150, deadline=None)
def test_asking_again_from_where_it_stopped_gives_the_rest(
    messages: list[Message], config: Config, data: st.DataObject
) -> None:
    """However often the work is done, and after how many messages, the chunks are the same."""
    whole, parts, start = find_closed_chunks(messages, config), [], 0
    for size in [*sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=5))), len(messages)]:
        found = find_closed_chunks(messages[start:size], config)
        parts += found
        start = found[-1].end_seq if found else start

    assert parts == whole


@given(TALKS, CONFIGS)
@settings(max_examples=150, deadline=None)
def test_the_clock_closes_only_what_a_later_message_would(messages: list[Message], config: Config) -> None:
    later = MONDAY + timedelta(days=365)
    by_clock = find_closed_chunks(messages, config, now_ms=to_ms(later))
    for role in ("user", "assistant"):
        by_message = find_closed_chunks([*messages, Message(role, "hi", at=later, seq=len(messages) + 1)], config)

        assert by_message[: len(by_clock)] == by_clock


@given(TALKS, CONFIGS, st.integers(0, 150))
@settings(max_examples=150, deadline=None)
def test_chunks_are_gapless_bounded_and_cover_what_has_ended(
    messages: list[Message], config: Config, ended_seq: int
) -> None:
    chunks = find_closed_chunks(messages, config, ended_seq=ended_seq)
    starts = [1] + [c.end_seq + 1 for c in chunks]

    assert [c.start_seq for c in chunks] == starts[:-1]
    assert all(c.end_seq - c.start_seq < 2 * LONG_EXCHANGE * config.chunk_messages + 2 for c in chunks)
    rest = messages[starts[-1] - 1 : ended_seq]
    assert not rest or (chunks and 4 * len(rest) < config.chunk_tokens)  # every message is one token
    assert len(messages) - starts[-1] < 2 * LONG_EXCHANGE * config.chunk_messages + 2


@given(st.lists(st.sampled_from(["u", "a", "u a!x t!x", "u a!x,y t!y t!x a", "a!x u t!x", "+400", "+10"]), max_size=60))
@settings(max_examples=150, deadline=None)
def test_a_recorded_result_stays_with_its_call(parts: list[str]) -> None:
    messages = script(" ".join(parts))
    last_call: dict[str, int] = {}
    boundaries = set(ends(messages))
    for message in messages:
        for call in message.meta.get("tool_calls", ()):
            last_call[call["id"]] = message.seq
        if "tool_call_id" in message.meta:
            group = range(last_call[message.meta["tool_call_id"]], message.seq)

            assert boundaries.isdisjoint(group)


@pytest.mark.parametrize(
    ("text", "small"),
    [
        ("hi, how are you today?", True),
        ("Thanks, talk tomorrow!", True),
        ("¿cómo estás?", True),
        ("你好吗？", True),
        ("How is Luna?", False),
        ("I'm so glad Luna is better", False),
        ("Thanks, what's my budget?", False),
        ("Thanks! See you on 12 May", False),
        ("yes please", False),
    ],
)
def test_small_talk_asks_for_nothing(text, small):
    assert is_small_talk(text) == small
