"""
Conversation memory for chatbots: every turn kept, every fact current, every prompt within budget.

    from holdfast import Memory

    memory = Memory("chat.db")
    chat = memory.conversation("web-42", user="alice")

Names are loaded when first used, so that a program which only asks for ``--help`` stays fast.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .admin import Admin, ApiKeys, Erasures, Events, Operations, ProviderKeys
    from .aio import (
        AsyncAdmin,
        AsyncApiKeys,
        AsyncConversation,
        AsyncErasures,
        AsyncEvents,
        AsyncMemory,
        AsyncOperations,
        AsyncPrompts,
        AsyncProviderKeys,
        AsyncUser,
    )
    from .config import Config
    from .context.result import Context
    from .conversation import Conversation
    from .errors import HoldfastError
    from .importers.backups import restore_backup, verify_backup
    from .ingest.redact import PresidioDetector
    from .integrations.callable import UserMessages, with_memory
    from .memory import Memory
    from .reports import (
        AskedAgain,
        BackfillReport,
        Backlog,
        BackupReport,
        ConsolidationReport,
        ConversationState,
        DigestReport,
        ErasureReceipt,
        Event,
        Explained,
        Finding,
        Measure,
        Merged,
        MessageCount,
        Metrics,
        News,
        Operation,
        PromptPreview,
        PromptSample,
        PruneReport,
        Ranked,
        RebuildReport,
        Rebuilt,
        Receipt,
        ReplayReport,
        Report,
        StoreStats,
        Usage,
    )
    from .store.messages import InMemoryMessages, JsonFileMessages, MessageStore
    from .text.terms import CalibratedCounter, TiktokenCounter
    from .types import (
        ApiKey,
        Budget,
        Candidate,
        Consent,
        Detector,
        Evidence,
        Fact,
        FactChange,
        Hit,
        Job,
        Message,
        NewKey,
        Price,
        PromptVersion,
        ProviderKey,
        Rejected,
        RollingSummary,
        Secret,
        Section,
        Summary,
        Upstream,
    )
    from .user import Prompts, User

__version__ = "0.1.0"

# A library says nothing by itself; programs that want to hear it give this logger a handler.
logging.getLogger("holdfast").addHandler(logging.NullHandler())

_HOME = {
    "Admin": "admin",
    "ApiKey": "types",
    "ApiKeys": "admin",
    "AskedAgain": "reports",
    "AsyncAdmin": "aio",
    "AsyncApiKeys": "aio",
    "AsyncConversation": "aio",
    "AsyncErasures": "aio",
    "AsyncEvents": "aio",
    "AsyncMemory": "aio",
    "AsyncOperations": "aio",
    "AsyncPrompts": "aio",
    "AsyncProviderKeys": "aio",
    "AsyncUser": "aio",
    "BackfillReport": "reports",
    "Backlog": "reports",
    "BackupReport": "reports",
    "Budget": "types",
    "CalibratedCounter": "text.terms",
    "Candidate": "types",
    "Config": "config",
    "Consent": "types",
    "ConsolidationReport": "reports",
    "Context": "context.result",
    "Conversation": "conversation",
    "ConversationState": "reports",
    "Detector": "types",
    "DigestReport": "reports",
    "ErasureReceipt": "reports",
    "Erasures": "admin",
    "Event": "reports",
    "Events": "admin",
    "Evidence": "types",
    "Explained": "reports",
    "Fact": "types",
    "FactChange": "types",
    "Finding": "reports",
    "Hit": "types",
    "HoldfastError": "errors",
    "InMemoryMessages": "store.messages",
    "Job": "types",
    "JsonFileMessages": "store.messages",
    "Measure": "reports",
    "Memory": "memory",
    "Merged": "reports",
    "Message": "types",
    "MessageCount": "reports",
    "MessageStore": "store.messages",
    "Metrics": "reports",
    "NewKey": "types",
    "News": "reports",
    "Operation": "reports",
    "Operations": "admin",
    "PresidioDetector": "ingest.redact",
    "Price": "types",
    "PromptPreview": "reports",
    "PromptSample": "reports",
    "PromptVersion": "types",
    "Prompts": "user",
    "ProviderKey": "types",
    "ProviderKeys": "admin",
    "PruneReport": "reports",
    "Ranked": "reports",
    "RebuildReport": "reports",
    "Rebuilt": "reports",
    "Receipt": "reports",
    "Rejected": "types",
    "ReplayReport": "reports",
    "Report": "reports",
    "RollingSummary": "types",
    "Secret": "types",
    "Section": "types",
    "StoreStats": "reports",
    "Summary": "types",
    "TiktokenCounter": "text.terms",
    "Upstream": "types",
    "Usage": "reports",
    "User": "user",
    "UserMessages": "integrations.callable",
    "restore_backup": "importers.backups",
    "verify_backup": "importers.backups",
    "with_memory": "integrations.callable",
}

__all__ = [
    "Admin",
    "ApiKey",
    "ApiKeys",
    "AskedAgain",
    "AsyncAdmin",
    "AsyncApiKeys",
    "AsyncConversation",
    "AsyncErasures",
    "AsyncEvents",
    "AsyncMemory",
    "AsyncOperations",
    "AsyncPrompts",
    "AsyncProviderKeys",
    "AsyncUser",
    "BackfillReport",
    "Backlog",
    "BackupReport",
    "Budget",
    "CalibratedCounter",
    "Candidate",
    "Config",
    "Consent",
    "ConsolidationReport",
    "Context",
    "Conversation",
    "ConversationState",
    "Detector",
    "DigestReport",
    "ErasureReceipt",
    "Erasures",
    "Event",
    "Events",
    "Evidence",
    "Explained",
    "Fact",
    "FactChange",
    "Finding",
    "Hit",
    "HoldfastError",
    "InMemoryMessages",
    "Job",
    "JsonFileMessages",
    "Measure",
    "Memory",
    "Merged",
    "Message",
    "MessageCount",
    "MessageStore",
    "Metrics",
    "NewKey",
    "News",
    "Operation",
    "Operations",
    "PresidioDetector",
    "Price",
    "PromptPreview",
    "PromptSample",
    "PromptVersion",
    "Prompts",
    "ProviderKey",
    "ProviderKeys",
    "PruneReport",
    "Ranked",
    "RebuildReport",
    "Rebuilt",
    "Receipt",
    "Rejected",
    "ReplayReport",
    "Report",
    "RollingSummary",
    "Secret",
    "Section",
    "StoreStats",
    "Summary",
    "TiktokenCounter",
    "Upstream",
    "Usage",
    "User",
    "UserMessages",
    "restore_backup",
    "verify_backup",
    "with_memory",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return import_module(f"{__name__}.integrations.strategies")
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
