"""
The front door over HTTP: the same calls, values and errors, with the memory on another machine.

    from holdfast.client import Client

    memory = Client("http://127.0.0.1:7800", key="hf_…")
    chat = memory.conversation("web-42", user="alice")
    chat.record("I'm vegetarian.", "Noted!")
"""

from __future__ import annotations

try:
    import httpx2 as _httpx2
except ModuleNotFoundError as error:
    raise ImportError("holdfast.client needs httpx2: pip install 'holdfast[client]'") from error

from .aio import AsyncAdmin, AsyncApiKeys, AsyncClient, AsyncConversation, AsyncPrompts, AsyncUser
from .calls import NotAllowed, TooOften, Unreachable
from .sync import Admin, ApiKeys, Client, Conversation, Prompts, User

del _httpx2

__all__ = [
    "Admin",
    "ApiKeys",
    "AsyncAdmin",
    "AsyncApiKeys",
    "AsyncClient",
    "AsyncConversation",
    "AsyncPrompts",
    "AsyncUser",
    "Client",
    "Conversation",
    "NotAllowed",
    "Prompts",
    "TooOften",
    "Unreachable",
    "User",
]
