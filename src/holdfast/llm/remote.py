"""
Models of providers, called through pydantic-ai, with every failure translated to a `ModelError`.

Nothing is retried here: the job queue does that.  No error carries the key, the prompt
or the provider's words, which may quote the prompt.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any, TypeVar

import httpx2
from genai_prices import Usage, calc_price
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ..errors import ConfigError
from ..text.terms import count_tokens
from ..text.validate import short_cache_key
from ..types import Secret
from .guard import Address
from .guarded_http import AddressRefused, guarded_client
from .protocol import Answer, Finish, ModelError, Request

# Tokens for thinking, on top of the answer, for models that cannot answer without it.
THINKING_TOKENS = 4096
CONNECT_TIMEOUT_S = 10.0
# Options that a server may refuse, by its own name, and the settings to leave out then.
OPTIONS: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "prompt_cache_retention": ("openai_prompt_cache_retention",),
    "prompt_cache_key": ("openai_prompt_cache_key", "openai_prompt_cache_retention"),
    "cache_control": ("cache",),
    "reasoning_effort": ("thinking",),
    "thinking": ("thinking",),
    "max_tokens": (),
}


class RemoteModel:
    """A model of a provider; several threads may call it at once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._loop = EventLoopThread(f"holdfast-{address.provider}")
        self._lock = threading.Lock()
        self._open: tuple[Model, httpx2.AsyncClient] | None = None
        self._refused: frozenset[str] = frozenset()
        self._connected()  # raise at once for an option that cannot be used
        self._finalizer = weakref.finalize(self, self._loop.stop)

    @property
    def name(self) -> str:
        """Provider and model."""
        return self.address.name

    @property
    def rate_limit_key(self) -> str:
        """The provider, its address and the key: a rate limit holds for a key, whichever model is called with it."""
        return "\0".join((self.address.provider, self.address.base_url or "", self.address.api_key or ""))

    def __repr__(self) -> str:
        return f"RemoteModel({self.name!r})"

    def ask(self, request: Request) -> Answer:
        """Send one request; options that the server refuses are left out from then on."""
        start = time.monotonic()
        while True:
            left_s = max(0.01, request.timeout_s - (time.monotonic() - start))
            answer = self._attempt(replace(request, timeout_s=left_s), request.timeout_s)
            if answer is not None:
                return answer

    def _attempt(self, request: Request, timeout_s: float) -> Answer | None:
        """Return the answer, or ``None`` when the call is worth repeating without a refused option."""
        model, client = self._connected()
        failure: ModelError
        try:
            response = self._loop.run(_ask(model, self.address, request, self._refused), client.aclose)
        except ai.ModelAPIError as error:
            if self._leaves_out(error):
                return None
            failure = _translated(self.name, error, timeout_s)
        except CancelledError:
            failure = ModelError(f"{self.name} was closed during the call", hint="it is tried again")
        except (
            RuntimeError,
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
        ) as error:  # any failure to read the response
            failure = ModelError(
                f"{self.name} sent something that is not an answer ({type(error).__name__})", hint="it is tried again"
            )
        except httpx2.TransportError as error:
            failure = _broken(self.name, error)
        else:
            return _answer(self, request, response)
        raise failure  # out here it does not carry the other error, which may quote the prompt

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """Return the price in US dollars by the table of genai-prices; 0 for a local model, ``None`` when unknown."""
        if self.address.local:
            return 0.0
        if self.address.compatible:
            return None
        used = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
        try:
            return float(calc_price(used, self.address.model, provider_id=self.address.provider).total_price)
        except (LookupError, ValueError):  # an unknown model, or an impossible count
            return None

    def close(self) -> None:
        """Close the connections; a later call opens them again."""
        self._loop.stop()
        with self._lock:
            self._open = None

    def _leaves_out(self, error: ai.ModelAPIError) -> bool:
        """Note an option that the server refused, and return whether the call can be repeated without it."""
        said = (
            str(error.body).lower() if isinstance(error, ai.ModelHTTPError) and error.status_code in (400, 422) else ""
        )
        with self._lock:
            known = (option for option in OPTIONS if option != "max_tokens" or self.address.compatible)
            found = next((option for option in known if option in said and option not in self._refused), None)
            if found is None:
                return False
            self._refused |= {found}
            if found == "max_tokens" and self._open is not None:
                self._open = (_model(self.address, self._open[1], self._refused), self._open[1])
            return True

    def _connected(self) -> tuple[Model, httpx2.AsyncClient]:
        with self._lock:
            if self._open is None or self._loop.inherited:
                self._open = _connect(self.address, self._refused)
            return self._open


class AnswerTooLong(httpx2.ReadError):
    """The response is larger than the limit; the rest is not read."""


class _LimitedStream(httpx2.AsyncByteStream):
    """A response body that is read and unpacked up to a limit."""

    def __init__(self, body: Any, limit: int, *, packed: bool) -> None:
        self._body, self._limit, self._packed = body, limit, packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, unpacking = self._limit, zlib.decompressobj(wbits=47) if self._packed else None  # gzip and zlib
        async for piece in self._body:
            try:
                whole = unpacking.decompress(piece, left + 1) if unpacking else piece
            except zlib.error as error:
                raise httpx2.ReadError("the answer cannot be unpacked") from error
            left -= len(whole)
            if left < 0:
                raise AnswerTooLong("the answer is too long")
            yield whole

    async def aclose(self) -> None:
        await self._body.aclose()


def _client(address: Address) -> httpx2.AsyncClient:
    limit = address.max_answer_bytes

    async def limit_size(response: httpx2.Response) -> None:
        packing = response.headers.pop("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "gzip", "deflate", ""):
            raise httpx2.ReadError("the answer has an encoding that was not requested")
        response.stream = _LimitedStream(response.stream, limit, packed=packing in ("gzip", "deflate"))

    options: dict[str, Any] = {
        "timeout": httpx2.Timeout(600, connect=CONNECT_TIMEOUT_S),
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [limit_size]},
    }
    if address.guarded is None:
        return httpx2.AsyncClient(**options)
    return guarded_client(*address.guarded, address.provider, Secret(address.api_key or ""), **options)


def _connect(address: Address, refused: frozenset[str]) -> tuple[Model, httpx2.AsyncClient]:
    """
    Raises:
        ConfigError: the provider's package is missing or refuses an option.
    """
    client = _client(address)
    try:
        return _model(address, client, refused), client
    except ImportError as error:
        raise ConfigError(
            f"{address.name} needs a package: {error.name}", hint="pip install 'holdfast[llm]'"
        ) from error
    except (ai.UserError, ValueError) as error:
        raise ConfigError(f"{address.name} cannot be used: {type(error).__name__}", hint="check the address") from error


def _model(address: Address, client: httpx2.AsyncClient, refused: frozenset[str]) -> Model:
    url, key = address.base_url, address.api_key
    if address.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is

        return AnthropicModel(address.model, provider=AnthropicProvider(api_key=key, base_url=url, http_client=client))
    if address.provider == "google":
        from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
        from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is

        return GoogleModel(address.model, provider=GoogleProvider(api_key=key, base_url=url, http_client=client))
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415 - an SDK takes seconds to load; only the one that is asked is

    if not address.compatible:
        return OpenAIChatModel(address.model, provider=OpenAIProvider(base_url=url, api_key=key, http_client=client))
    other = (
        OllamaProvider(base_url=url, api_key=key, http_client=client)
        if address.provider == "ollama"
        else OpenAICompatibleProvider("openai-compatible", base_url=url or "", api_key=key, http_client=client)
    )
    # the older name of the limit is known to every server, but not taken by all models
    newer = "max_tokens" in refused
    return OpenAIChatModel(
        address.model, provider=other, profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=newer)
    )


async def _ask(model: Model, address: Address, request: Request, refused: frozenset[str]) -> ModelResponse:
    before: list[ModelMessage] = [
        ModelRequest.user_text_prompt(said) if role == "user" else ModelResponse(parts=[TextPart(said)])
        for role, said in request.before
    ]
    asked = ModelRequest.user_text_prompt(request.text, instructions=request.system or None)
    settings = _settings(model, address, request)
    for option in refused:
        for name in OPTIONS[option]:
            settings.pop(name, None)  # type: ignore[misc]
    return await model_request(model, [*before, asked], model_settings=settings)


def _settings(model: Model, address: Address, request: Request) -> ModelSettings:
    profile = dict(model.profile)
    thinks = bool(profile.get("thinking_always_enabled"))
    settings: dict[str, Any] = {
        "max_tokens": request.max_output_tokens + (THINKING_TOKENS if thinks else 0),
        "timeout": request.timeout_s,
        "request_timeout": request.timeout_s,
        "max_retries": 0,
        "thinking": False,
    }
    if _accepts_temperature(profile):
        settings["temperature"] = request.temperature
    if request.cache_key:
        settings |= _caching(profile, address, request.cache_key)
    return settings  # type: ignore[return-value]


def _accepts_temperature(profile: dict[str, Any]) -> bool:
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    silent = "none" in efforts if efforts is not None else profile.get("openai_supports_reasoning_effort_none", False)
    return bool(silent) and not profile.get("thinking_always_enabled")


def _caching(profile: dict[str, Any], address: Address, key: str) -> dict[str, Any]:
    """Return the settings by which the provider caches an equal beginning; empty where it takes none."""
    if address.compatible or address.provider == "google":
        return {}
    key = short_cache_key(key)
    long = address.cache_retention == "24h"
    if address.provider == "anthropic":
        return {"cache": {"retention": "1h" if long else "5m", "messages": False}}
    if profile.get("openai_supports_prompt_cache_breakpoints"):
        return {"openai_prompt_cache_key": key}
    kept = "24h" if long and address.model.startswith(("gpt-5", "gpt-4.1")) else "in_memory"
    return {"openai_prompt_cache_key": key, "openai_prompt_cache_retention": kept}


_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}


def _answer(model: RemoteModel, request: Request, response: ModelResponse) -> Answer:
    text, used = response.text or "", response.usage
    counted = bool(used.input_tokens or used.output_tokens)
    input_tokens = used.input_tokens if counted else count_tokens(request.system) + count_tokens(request.text)
    output_tokens = used.output_tokens if counted else count_tokens(text)
    cached = min(used.cache_read_tokens, input_tokens)
    return Answer(
        text=text,
        model=model.name,
        finish=_FINISH.get(response.finish_reason, "stop"),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached,
        estimated=not counted,
        cost=model.price(input_tokens, output_tokens, cached),
    )


def _translated(name: str, error: ai.ModelAPIError, timeout_s: float) -> ModelError:
    """Translate a failure, and say whether the same call may work later."""
    status = f" (status {error.status_code})" if isinstance(error, ai.ModelHTTPError) else ""
    wait = error.retry_after
    for kind, said, hint in _FINAL:
        if isinstance(error, kind):
            return ModelError(
                f"{name} {said}{status}", hint=hint, transient=False, retry_after_s=wait, setup=kind in _SETUP
            )
    if isinstance(error, ai.ModelRequestTimeout | ai.ModelTimeoutError):
        hint = "it is tried again; raise Config.model_timeout_s if the model is slow"
        return ModelError(f"{name} did not answer within {timeout_s:g} seconds", hint=hint)
    if isinstance(error, ai.ModelConnectionError):
        return _broken(name, error)
    said = next((said for kind, said in _PASSING if isinstance(error, kind)), "failed")
    final = (
        isinstance(error, ai.ModelHTTPError)
        and 400 <= error.status_code < 500
        and error.status_code not in (408, 409, 425, 429)
    )
    return ModelError(
        f"{name} {said}{status}", hint="" if final else "it is tried again", transient=not final, retry_after_s=wait
    )


_FINAL: tuple[tuple[type[ai.ModelAPIError], str, str], ...] = (
    (ai.ModelAuthenticationError, "refused the key", "check the key, and that it may use this model"),
    (ai.ModelNotFoundError, "is not known there", "check the name of the model and the address"),
    (ai.ModelContextWindowExceededError, "does not take a prompt of this length", "use a model with a larger window"),
    (ai.ModelQuotaExceededError, "has no credit left", "check the plan and the billing at the provider"),
    (ai.ModelRequestRejectedError, "rejected the request", "another model may take it"),
)
_SETUP = (ai.ModelAuthenticationError, ai.ModelNotFoundError, ai.ModelQuotaExceededError)
_PASSING: tuple[tuple[type[ai.ModelAPIError], str], ...] = (
    (ai.ModelRateLimitError, "has reached its rate limit"),
    (ai.ModelOverloadedError, "is overloaded"),
    (ai.ModelUnavailableError, "is unavailable"),
    (ai.ModelServerError, "had an error of its own"),
)


def _broken(name: str, error: BaseException) -> ModelError:
    """Translate a failed connection, or a response that was too large."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, AnswerTooLong):
            return ModelError(f"{name} sent a longer answer than allowed", hint="it is tried again")
        if isinstance(seen, AddressRefused):
            hint = "give another base_url, or have the operator allow it"
            return ModelError(f"{name} is not called: {seen}", hint=hint, transient=False, setup=True)
        seen = seen.__cause__ or seen.__context__
    phase = getattr(error, "phase", None)
    said = "cannot be reached" if phase in ("connect", "pool") else "broke off"
    hint = "is the server running, and the address right?" if phase == "connect" else "it is tried again"
    return ModelError(f"{name} {said}", hint=hint)


T = TypeVar("T")


class EventLoopThread:
    """
    An event loop on its own thread, so that asynchronous clients can be called from any thread.

    It starts with the first call, starts again in a forked process, and ends with `stop` or with its owner.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._process = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._last: Callable[[], Awaitable[None]] | None = None

    def run(self, work: Coroutine[Any, Any, T], last: Callable[[], Awaitable[None]]) -> T:
        """
        Run *work* and return its result; it is cancelled when the waiting thread is interrupted.

        *last* is awaited when the loop stops.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._running(last))
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def inherited(self) -> bool:
        """Whether the loop was started before this process was forked, and so does not run here."""
        return self._loop is not None and self._process != os.getpid()

    def _running(self, last: Callable[[], Awaitable[None]]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self.inherited:
                self._loop = asyncio.new_event_loop()
                self._process, self._last = os.getpid(), last
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            if self._last is not None:
                loop.run_until_complete(self._last())
        finally:
            loop.close()

    def stop(self) -> None:
        """End the thread; a later call starts another one."""
        with self._lock:
            loop, thread, mine = self._loop, self._thread, not self.inherited
            self._loop = self._thread = None
        if loop is None or thread is None or not mine:
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join()
