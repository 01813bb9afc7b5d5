"""Agents of frameworks whose model is behind a served memory, unmodified but for the address: OpenAI Agents, Pydantic AI, LangChain."""

from __future__ import annotations

import asyncio

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from anthropic import AsyncAnthropic
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.integrations.frameworks.served_clients import HEADERS, ServedClient, model, serve, weather, world

__all__ = ["model", "serve", "world"]

set_tracing_disabled(True)


def connected(url, key):
    return openai.AsyncOpenAI(base_url=url, api_key=key, default_headers=HEADERS, max_retries=0)


class TestOpenAIAgents(ServedClient):
    """The default of the Agents SDK: responses."""

    model = OpenAIResponsesModel

    def agent(self, url, key, **more):
        return Agent(name="Bo", model=self.model("m-1", connected(url, key)), **more)

    def plain(self, url, key, text):
        return asyncio.run(Runner.run(self.agent(url, key), text)).final_output

    def stream(self, url, key, text, stop_after=None):
        async def listen():
            run, words = Runner.run_streamed(self.agent(url, key), text), []
            async for event in run.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    words.append(event.data.delta)
                    if len(words) == stop_after:
                        run.cancel()
            return words

        return asyncio.run(listen())

    def tools(self, url, key, text):
        agent = self.agent(url, key, tools=[function_tool(weather)])
        return asyncio.run(Runner.run(agent, text)).final_output

    def turns(self, url, key, *texts):
        async def talk():
            agent, history, replies = self.agent(url, key), [], []
            for text in texts:
                done = await Runner.run(agent, [*history, {"role": "user", "content": text}])
                history = done.to_input_list()
                replies.append(done.final_output)
            return replies

        return asyncio.run(talk())


class TestOpenAIAgentsChat(TestOpenAIAgents):
    model = OpenAIChatCompletionsModel


class TestPydanticAI(ServedClient):
    """The default of Pydantic AI's ``openai:``: responses."""

    def model(self, url, key):
        return PydanticResponsesModel("m-1", provider=OpenAIProvider(openai_client=connected(url, key)))

    def agent(self, url, key, **more):
        return PydanticAgent(self.model(url, key), **more)

    def plain(self, url, key, text):
        return self.agent(url, key).run_sync(text).output

    def stream(self, url, key, text, stop_after=None):
        async def listen():
            words = []
            async with self.agent(url, key).run_stream(text) as run:
                async for word in run.stream_text(delta=True, debounce_by=None):
                    words.append(word)
                    if len(words) == stop_after:
                        break
            return words

        return asyncio.run(listen())

    def tools(self, url, key, text):
        return self.agent(url, key, tools=[weather]).run_sync(text).output

    def turns(self, url, key, *texts):
        agent, history, replies = self.agent(url, key), None, []
        for text in texts:
            done = agent.run_sync(text, message_history=history)
            history = done.all_messages()
            replies.append(done.output)
        return replies


class TestPydanticAIChat(TestPydanticAI):
    def model(self, url, key):
        return OpenAIChatModel("m-1", provider=OpenAIProvider(openai_client=connected(url, key)))


class TestPydanticAIAnthropic(TestPydanticAI):
    def model(self, url, key):
        client = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=key, default_headers=HEADERS, max_retries=0)
        return AnthropicModel("m-1", provider=AnthropicProvider(anthropic_client=client))


class TestLangChain(ServedClient):
    """The default of `ChatOpenAI`."""

    responses = None

    def model(self, url, key):
        return ChatOpenAI(
            model="m-1",
            base_url=url,
            api_key=key,
            default_headers=HEADERS,
            max_retries=0,
            use_responses_api=self.responses,
        )

    def plain(self, url, key, text):
        return self.model(url, key).invoke(text).text

    def stream(self, url, key, text, stop_after=None):
        words, chunks = [], self.model(url, key).stream(text)
        for chunk in chunks:
            if chunk.text:
                words.append(chunk.text)
            if len(words) == stop_after:
                break
        chunks.close()
        return words

    def tools(self, url, key, text):
        agent = create_agent(self.model(url, key), tools=[weather])
        return agent.invoke({"messages": [{"role": "user", "content": text}]})["messages"][-1].text

    def turns(self, url, key, *texts):
        agent, history, replies = create_agent(self.model(url, key)), [], []
        for text in texts:
            history = agent.invoke({"messages": [*history, {"role": "user", "content": text}]})["messages"]
            replies.append(history[-1].text)
        return replies


class TestLangChainResponses(TestLangChain):
    responses = True


class TestLangChainAnthropic(TestLangChain):
    def model(self, url, key):
        address = url.removesuffix("/v1")
        return ChatAnthropic(
            model="m-1", base_url=address, api_key=key, default_headers=HEADERS, max_retries=0, max_tokens=500
        )
