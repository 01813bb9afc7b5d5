"""What a model said is found in the shapes of the usual providers, whole or in chunks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from holdfast import Message, ReplyUsage
from holdfast.integrations.calls.replies import StreamedReply, reply_message, reported_usage

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}


def objects(value):
    """The same as the objects that a client library hands out."""
    if isinstance(value, dict):
        return SimpleNamespace(
            **{key: item if key in ("args", "input") else objects(item) for key, item in value.items()}
        )
    return [objects(item) for item in value] if isinstance(value, list) else value


WHOLE = {
    "text": ("fine", "fine", []),
    "message": (Message("assistant", "fine"), "fine", []),
    "OpenAI chat": ({"choices": [{"message": {"role": "assistant", "content": "fine"}}]}, "fine", []),
    "OpenAI tools": ({"choices": [{"message": {"content": None, "tool_calls": [CALL]}}]}, "", [CALL]),
    "OpenAI parts": (
        {"choices": [{"message": {"content": [{"type": "text", "text": "fi"}, {"text": "ne"}]}}]},
        "fine",
        [],
    ),
    "OpenAI responses as they are sent": (
        {
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "fi"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ne"}]},
            ]
        },
        "fine",
        [],
    ),
    "OpenAI responses": ({"output_text": "fine", "output": []}, "fine", []),
    "Anthropic": ({"content": [{"type": "text", "text": "fine"}], "role": "assistant"}, "fine", []),
    "Anthropic tools": (
        {
            "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Lisbon"}},
            ]
        },
        "wait",
        [CALL],
    ),
    "OpenAI responses tools": (
        {
            "output_text": "",
            "output": [
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "c1",
                    "name": "weather",
                    "arguments": '{"city": "Lisbon"}',
                }
            ],
        },
        "",
        [CALL],
    ),
    "Google": ({"text": "fine", "candidates": []}, "fine", []),
    "LangChain": ({"content": "fine", "type": "ai", "tool_calls": []}, "fine", []),
    "LangChain tools": (
        {"content": "", "tool_calls": [{"id": "c1", "name": "weather", "args": {"city": "Lisbon"}}]},
        "",
        [CALL],
    ),
    "plain message": ({"role": "assistant", "content": "fine"}, "fine", []),
    "empty answer": ({"choices": [{"message": {"content": ""}}]}, "", []),
}


@pytest.mark.parametrize("form", [lambda value: value, objects], ids=["mapping", "object"])
@pytest.mark.parametrize(("reply", "text", "calls"), WHOLE.values(), ids=WHOLE)
def test_a_whole_reply_is_read(reply, text, calls, form):
    said = reply_message(form(reply))

    assert (said.role, said.content) == ("assistant", text)
    assert said.meta.get("tool_calls", []) == calls


@pytest.mark.parametrize("reply", [None, 5, b"fine", {}, {"choices": []}, {"content": None}, {"content": 5}, object()])
def test_what_is_no_reply_is_not_taken_for_an_empty_one(reply):
    assert reply_message(reply) is None


CHUNKS = {
    "text": (["fi", "ne"], "fine"),
    "OpenAI chat": (
        [
            {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"delta": {"content": "fi"}}]},
            {"choices": [{"delta": {"content": "ne"}}]},
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "model": "m", "usage": {"prompt_tokens": 7}},
        ],
        "fine",
    ),
    "OpenAI responses": (
        [
            {"type": "response.created", "response": {"output": []}},
            {"type": "response.output_text.delta", "delta": "fi"},
            {"type": "response.output_text.delta", "delta": "ne"},
            {"type": "response.function_call_arguments.delta", "delta": "{}"},
            {"type": "response.output_text.done", "text": "fine"},
            {"type": "response.completed", "response": {"output_text": "fine"}},
        ],
        "fine",
    ),
    "Anthropic": (
        [
            {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 7}}},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "fi"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ne"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        "fine",
    ),
    "Google": ([{"text": "fi"}, {"text": "ne"}], "fine"),
    "LangChain": ([{"content": "fi", "type": "AIMessageChunk"}, {"content": "ne", "type": "AIMessageChunk"}], "fine"),
}


@pytest.mark.parametrize("form", [lambda value: value, objects], ids=["mapping", "object"])
@pytest.mark.parametrize(("chunks", "text"), CHUNKS.values(), ids=CHUNKS)
def test_chunks_are_put_together_once_each(chunks, text, form):
    reply = StreamedReply()
    for chunk in chunks:
        reply.add(form(chunk))

    assert reply.message() == Message("assistant", text)


def test_tool_calls_in_pieces_are_put_together():
    pieces = [
        [{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"city": '}}],
        [{"index": 1, "id": "c2", "function": {"name": "clock", "arguments": "{}"}}],
        [{"index": 0, "function": {"arguments": '"Lisbon"}'}}],
    ]
    reply = StreamedReply()
    for piece in pieces:
        reply.add({"choices": [{"delta": {"tool_calls": piece}}]})

    other = {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    assert reply.message().meta == {"tool_calls": [CALL, other]}


CALLS_IN_CHUNKS = {
    "Anthropic": (
        [
            {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "server_tool_use", "id": "s1"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {
                "type": "content_block_start",
                "index": 2,
                "content_block": {"type": "tool_use", "id": "c1", "name": "weather", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "input_json_delta", "partial_json": '{"city": '},
            },
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "input_json_delta", "partial_json": '"Lisbon"}'},
            },
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
    ),
    "OpenAI responses": (
        [
            {"type": "response.output_item.added", "item": {"type": "function_call", "name": "weather"}},
            {"type": "response.function_call_arguments.delta", "delta": '{"city": "Lisbon"}'},
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "c1",
                    "name": "weather",
                    "arguments": '{"city": "Lisbon"}',
                },
            },
            {
                "type": "response.completed",
                "response": {"model": "m", "usage": {"input_tokens": 7, "output_tokens": 9}},
            },
        ]
    ),
    "LangChain": (
        [
            {
                "type": "AIMessageChunk",
                "content": "",
                "model": "m",
                "tool_call_chunks": [{"index": 0, "id": "c1", "name": "weather", "args": '{"city": '}],
                "usage_metadata": {"input_tokens": 7, "output_tokens": 0},
            },
            {
                "type": "AIMessageChunk",
                "content": "",
                "tool_call_chunks": [{"index": 0, "id": None, "name": None, "args": '"Lisbon"}'}],
                "usage_metadata": {"input_tokens": 0, "output_tokens": 9},
            },
        ]
    ),
}


@pytest.mark.parametrize("form", [lambda value: value, objects], ids=["mapping", "object"])
@pytest.mark.parametrize("chunks", CALLS_IN_CHUNKS.values(), ids=CALLS_IN_CHUNKS)
def test_tool_calls_and_usage_in_chunks_are_read_in_every_shape(chunks, form):
    reply = StreamedReply()
    for chunk in chunks:
        reply.add(form(chunk))

    assert reply.message() == Message("assistant", "", meta={"tool_calls": [CALL]})
    assert reply.usage == ReplyUsage("m", 7, 9)


def test_a_tool_call_without_arguments_has_an_empty_object():
    reply = StreamedReply()
    block = {"type": "tool_use", "id": "c1", "name": "clock", "input": {}}
    reply.add({"type": "content_block_start", "index": 0, "content_block": block})

    assert reply.message().meta["tool_calls"][0]["function"] == {"name": "clock", "arguments": "{}"}


def test_chunks_that_say_nothing_are_no_message():
    reply = StreamedReply()
    reply.add({"type": "ping"})

    assert (reply.message(), reply.chunk_count) == (None, 1)


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        ({"model": "m", "usage": {"prompt_tokens": 7}}, ReplyUsage("m", 7)),
        ({"model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}, ReplyUsage("m", 7, 1)),
        ({"usage": {"prompt_tokens": 7}}, ReplyUsage("", 7)),
        (
            {"model": "m", "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
            ReplyUsage("m", 9, 0, 4),
        ),
        ({"model": "m", "usage": {"input_tokens": 2, "cache_read_input_tokens": 5}}, ReplyUsage("m", 7, 0, 5)),
        ({"model": "m", "usage": {"prompt_tokens": 7, "cache_read_input_tokens": 5}}, ReplyUsage("m", 7, 0, 5)),
        ({"model": "m", "usage": {"prompt_tokens": 7, "prompt_cache_hit_tokens": 5}}, ReplyUsage("m", 7, 0, 5)),
        (
            {
                "modelVersion": "gemini",
                "usageMetadata": {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 2},
            },
            ReplyUsage("gemini", 9, 2, 4),
        ),
        (
            {"model_version": "g", "usage_metadata": {"prompt_token_count": 9, "cached_content_token_count": 4}},
            ReplyUsage("g", 9, 0, 4),
        ),
        (
            {"model": "m", "usage_metadata": {"input_tokens": 9, "input_token_details": {"cache_read": 4}}},
            ReplyUsage("m", 9, 0, 4),
        ),
        ({"usage": {"prompt_tokens": 0}}, None),
        ({"usage": None}, None),
        ("fine", None),
    ],
)
def test_reported_usage_is_read(reply, usage):
    assert reported_usage(reply) == usage
    assert reported_usage(objects(reply)) == usage
