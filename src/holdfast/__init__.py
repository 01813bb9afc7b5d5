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
    from .access import Access
    from .aio import (
        AsyncAccess,
        AsyncConversation,
        AsyncEvents,
        AsyncLedger,
        AsyncMemory,
        AsyncOrders,
        AsyncPrompts,
        AsyncUser,
        AsyncVault,
    )
    from .backups import restore_backup, verify_backup
    from .config import Config
    from .context.result import Context
    from .conversation import Conversation
    from .errors import HoldfastError
    from .events import Events
    from .figures import (
        AskedAgain,
        Backlog,
        Explained,
        Measure,
        Metrics,
        Order,
        PromptPreview,
        PromptSample,
        Ranked,
        Spent,
        StoreStats,
    )
    from .ingest.redact import PresidioDetector
    from .integrations.callable import UserMessages, with_memory
    from .ledger import Ledger
    from .memory import Memory
    from .orders import Orders
    from .prompts import Prompts
    from .reports import (
        BackfillReport,
        BackupReport,
        ConsolidationReport,
        ConversationState,
        DigestReport,
        ErasureReceipt,
        Event,
        Finding,
        Merged,
        News,
        PruneReport,
        RebuildReport,
        Rebuilt,
        Receipt,
        ReplayReport,
        Report,
        Usage,
    )
    from .secret import ProviderKey, Secret, Upstream
    from .store.jsonfiles import JsonFileMessages
    from .store.messages import InMemoryMessages, MessageStore
    from .text.tokens import CalibratedCounter, TiktokenCounter
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
        Rejected,
        RollingSummary,
        Section,
        Summary,
    )
    from .user import User
    from .vault import Vault

__version__ = "0.1.0"

# A library says nothing by itself; programs that want to hear it give this logger a handler.
logging.getLogger("holdfast").addHandler(logging.NullHandler())

_HOME = {
    "Access": "access",
    "ApiKey": "types",
    "AskedAgain": "figures",
    "Backlog": "figures",
    "AsyncAccess": "aio",
    "AsyncConversation": "aio",
    "AsyncLedger": "aio",
    "AsyncEvents": "aio",
    "AsyncOrders": "aio",
    "AsyncMemory": "aio",
    "AsyncUser": "aio",
    "AsyncPrompts": "aio",
    "AsyncVault": "aio",
    "Budget": "types",
    "BackfillReport": "reports",
    "BackupReport": "reports",
    "CalibratedCounter": "text.tokens",
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
    "Event": "reports",
    "Events": "events",
    "Orders": "orders",
    "Evidence": "types",
    "Explained": "figures",
    "Fact": "types",
    "FactChange": "types",
    "Finding": "reports",
    "Hit": "types",
    "HoldfastError": "errors",
    "InMemoryMessages": "store.messages",
    "Job": "types",
    "JsonFileMessages": "store.jsonfiles",
    "Measure": "figures",
    "Ledger": "ledger",
    "Memory": "memory",
    "Merged": "reports",
    "Message": "types",
    "MessageStore": "store.messages",
    "Metrics": "figures",
    "NewKey": "types",
    "News": "reports",
    "Order": "figures",
    "Spent": "figures",
    "User": "user",
    "UserMessages": "integrations.callable",
    "PresidioDetector": "ingest.redact",
    "Price": "types",
    "PromptPreview": "figures",
    "PromptSample": "figures",
    "PromptVersion": "types",
    "Prompts": "prompts",
    "ProviderKey": "secret",
    "PruneReport": "reports",
    "Ranked": "figures",
    "RebuildReport": "reports",
    "Rebuilt": "reports",
    "Receipt": "reports",
    "Rejected": "types",
    "ReplayReport": "reports",
    "Report": "reports",
    "RollingSummary": "types",
    "Secret": "secret",
    "Section": "types",
    "StoreStats": "figures",
    "Summary": "types",
    "TiktokenCounter": "text.tokens",
    "Upstream": "secret",
    "Usage": "reports",
    "Vault": "vault",
    "restore_backup": "backups",
    "verify_backup": "backups",
    "with_memory": "integrations.callable",
}

__all__ = [
    "Access",
    "ApiKey",
    "AskedAgain",
    "AsyncAccess",
    "AsyncConversation",
    "AsyncEvents",
    "AsyncLedger",
    "AsyncMemory",
    "AsyncOrders",
    "AsyncPrompts",
    "AsyncUser",
    "AsyncVault",
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
    "Ledger",
    "Measure",
    "Memory",
    "Merged",
    "Message",
    "MessageStore",
    "Metrics",
    "NewKey",
    "News",
    "Order",
    "Orders",
    "PresidioDetector",
    "Price",
    "PromptPreview",
    "PromptSample",
    "PromptVersion",
    "Prompts",
    "ProviderKey",
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
    "Spent",
    "StoreStats",
    "Summary",
    "TiktokenCounter",
    "Upstream",
    "Usage",
    "User",
    "UserMessages",
    "Vault",
    "restore_backup",
    "verify_backup",
    "with_memory",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return import_module(f"{__name__}.strategies")
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
