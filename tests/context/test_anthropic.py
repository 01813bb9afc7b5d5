"""The same context as Anthropic's Messages API takes it."""

from holdfast.context.assemble import Material, assemble
from holdfast.context.result import anthropic_request

from .worlds import CHAT, fact, hit, message

EPHEMERAL = {"type": "ephemeral"}


def text(words, **more):
    return {"type": "text", "text": words, **more}


def test_breakpoint_is_on_the_last_stable_block():
    material = Material(CHAT, [message(1, "Hi")], 1, facts=[fact("tea")])
    context, _ = assemble(material, budget_tokens=4000, recent_messages=20, system="Be kind.")

    request = context.to_anthropic()

    assert request["system"] == [text("Be kind.")]
    assert request["messages"] == [
        {"role": "user", "content": [text(context.messages[1]["content"], cache_control=EPHEMERAL), text("Hi")]}
    ]
    assert "cache_control" not in str(context.messages)


def test_breakpoint_is_on_the_system_text_while_nothing_is_remembered():
    material = Material(CHAT, [message(1, "Hi")], 1)
    context, _ = assemble(material, budget_tokens=4000, recent_messages=20, system="Be kind.")

    assert context.to_anthropic() == {
        "system": [text("Be kind.", cache_control=EPHEMERAL)],
        "messages": [{"role": "user", "content": [text("Hi")]}],
    }


def test_tools_become_blocks():
    call = {"id": "call 1", "type": "function", "function": {"name": "get weather", "arguments": '{"city": "Lisbon"}'}}
    request = anthropic_request(
        [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call 1", "content": "22"},
            {"role": "user", "content": "And tomorrow?", "name": "Ana"},
        ],
        0,
    )

    assert request == {
        "messages": [
            {"role": "user", "content": [text("Weather?")]},
            {
                "role": "assistant",
                "content": [
                    text("Let me look."),
                    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Lisbon"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "22"},
                    text("Ana: And tomorrow?"),
                ],
            },
        ]
    }


def test_what_the_api_refuses_is_mended():
    """It wants a user first, no empty text, no white space at the end, JSON objects as input."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "not json"}}
    request = anthropic_request(
        [
            {"role": "assistant", "content": "Welcome"},
            {"role": "user", "content": "  "},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "system", "content": "A note from the middle."},
            {"role": "assistant", "content": "Done. \n"},
        ],
        0,
    )

    assert [turn["role"] for turn in request["messages"]] == ["user", "assistant"] * 3
    assert request["messages"][2]["content"] == [text("(empty)")]
    assert request["messages"][3]["content"][0]["input"] == {"arguments": "not json"}
    assert request["messages"][4]["content"][1] == text("A note from the middle.")
    assert request["messages"][5]["content"] == [text("Done.")]


def marked(request):
    """The blocks of a request up to each mark, as a cache would keep them."""
    blocks, found = list(request.get("system", [])), []
    blocks += [block for turn in request["messages"] for block in turn["content"]]
    for index, block in enumerate(blocks):
        if "cache_control" in block:
            found.append([{**one, "cache_control": None} for one in blocks[: index + 1]])
    return found


def test_next_request_begins_with_what_the_second_mark_keeps():
    """The question and what is recalled for it change every time; the conversation before them does not."""
    turns = [message(1, "Hi"), message(2, "Hello!"), message(3, "I have a dog."), message(4, "Lovely.")]
    requests = []
    for last, asked in ((2, "I have a dog."), (4, "What was her name?")):
        material = Material(CHAT, turns[:last], last, facts=[fact("tea")], hits=[hit(9)], query=asked)
        context, _ = assemble(material, budget_tokens=4000, recent_messages=20)
        assert context.section("recalled").items
        requests.append(context.to_anthropic())

    first, second = marked(requests[0]), marked(requests[1])
    assert len(first) == len(second) == 2
    assert second[1][: len(first[1])] == first[1]
    assert "Hello!" in str(first[1][-1])
    assert "Lovely." in str(second[1][-1])
    assert "What was her name?" not in str(second[1])
