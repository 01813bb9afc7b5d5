"""LiteLLM's SDK whose model is behind a served memory: chat completions, responses, and Anthropic's messages."""

from __future__ import annotations

import json

import litellm

from tests.integrations.frameworks.served_clients import HEADERS, ServedClient, model, serve, weather, world

__all__ = ["model", "serve", "world"]

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "description": "Return the weather of a city.", "parameters": PARAMETERS}


class TestChat(ServedClient):
    named = "openai/m-1"

    def address(self, url):
        return url

    def ask(self, url, key, messages, **more):
        more = {"extra_headers": HEADERS, "max_retries": 0, **more}
        return litellm.completion(self.named, messages, api_base=self.address(url), api_key=key, **more)

    def plain(self, url, key, text):
        return self.ask(url, key, [{"role": "user", "content": text}]).choices[0].message.content

    def stream(self, url, key, text, stop_after=None):
        words, chunks = [], self.ask(url, key, [{"role": "user", "content": text}], stream=True)
        for chunk in chunks:
            words += [chunk.choices[0].delta.content] if chunk.choices and chunk.choices[0].delta.content else []
            if len(words) == stop_after:
                under = chunks.completion_stream
                getattr(under, "streaming_response", under).close()
                break
        return words

    def tools(self, url, key, text):
        messages, tools = [{"role": "user", "content": text}], [{"type": "function", "function": FUNCTION}]
        said = self.ask(url, key, messages, tools=tools).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            result = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return self.ask(url, key, messages, tools=tools).choices[0].message.content

    def turns(self, url, key, *texts):
        messages, replies = [], []
        for text in texts:
            messages.append({"role": "user", "content": text})
            replies.append(self.ask(url, key, messages).choices[0].message.content)
            messages.append({"role": "assistant", "content": replies[-1]})
        return replies


class TestAnthropic(TestChat):
    named = "anthropic/m-1"

    def address(self, url):
        return url.removesuffix("/v1")


class TestResponses(TestChat):
    named = "openai/gpt-5-mini"  # streams of models that it does not know are made up by LiteLLM

    def respond(self, url, key, items, **more):
        more = {"extra_headers": HEADERS, "max_retries": 0, **more}
        return litellm.responses(model=self.named, input=items, api_base=url, api_key=key, **more)

    def plain(self, url, key, text):
        return self.respond(url, key, text).output[0].content[0].text

    def stream(self, url, key, text, stop_after=None):
        words, events = [], self.respond(url, key, text, stream=True)
        for event in events:
            words += [event.delta] if event.type == "response.output_text.delta" else []
            if len(words) == stop_after:
                events.response.close()
                break
        return words

    def tools(self, url, key, text):
        items, tools = [{"role": "user", "content": text}], [{"type": "function", **FUNCTION}]
        for item in self.respond(url, key, items, tools=tools).output:
            items.append(item.model_dump(exclude_none=True))
            result = weather(**json.loads(item.arguments))
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
        return self.respond(url, key, items, tools=tools).output[0].content[0].text

    def turns(self, url, key, *texts):
        items, replies = [], []
        for text in texts:
            items.append({"role": "user", "content": text})
            output = self.respond(url, key, items).output
            items += [item.model_dump(exclude_none=True) for item in output]
            replies.append(output[0].content[0].text)
        return replies
