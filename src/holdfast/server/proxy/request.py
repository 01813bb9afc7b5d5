"""
A request for a reply: its bytes, its messages, and the options it sets for the memory.  Pure.

The body is never written anew: messages of ours are spliced into the client's own bytes, so that fields, numbers and
spaces that we know nothing of arrive as they were sent.

Chat programs also make requests for themselves: titles, tags, follow-ups, search queries, summaries of their history.
They hold the user's words, but nobody said them, so they pass without a memory.  They are known by a field or header
that names the task, or by their structure: an instruction about the conversation, with the conversation in it or before
it, and rules for an answer that a program reads.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from json.decoder import JSONDecoder
from typing import Any
from urllib.parse import quote, unquote

from ...text import dataclass, expression
from ...text.validate import parse_rating
from ..gate import Grant, named_by_header
from .shapes import CHAT, INSTRUCTIONS, RESPONSES, Shape

_log = logging.getLogger("holdfast")

_SPACE = expression(r"[ \t\n\r]*")
_DECODER = JSONDecoder()

Inserted = tuple[int, Mapping[str, Any]]
"""Before which of the client's messages (their number: after the last), and what."""


class Unreadable(ValueError):
    """The body is no chat request that we can read; the upstream may."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """
    The body of one request.

    ``opening`` is the place behind the brace that opens it, ``starts`` are the places of its messages, ``closing`` is
    that of the bracket behind the last of them.  ``bare``: in place of a list there is one text, the user's, which ends
    at ``closing``.
    """

    text: str
    fields: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    opening: int
    starts: Sequence[int]
    closing: int
    shape: Shape = CHAT
    bare: bool = False

    def with_messages(self, inserted: Sequence[Inserted]) -> str:
        """Return the body with *inserted* messages; every other byte stays as it was."""
        if self.bare:
            own = f'{{"role":"user","content":{self.text[self.starts[0] : self.closing]}}}'
            ours = [json.dumps(message, ensure_ascii=False, separators=(",", ":")) for _, message in inserted]
            before = sum(index == 0 for index, _ in inserted)
            listed = ",".join([*ours[:before], own, *ours[before:]])
            return f"{self.text[: self.starts[0]]}[{listed}]{self.text[self.closing :]}"
        parts, at = [], 0
        for index, message in sorted(inserted, key=lambda one: one[0]):
            written = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            last = index >= len(self.starts)
            place = self.closing if last else self.starts[index]
            parts += [self.text[at:place], f",{written}" if last else f"{written},"]
            at = place
        return "".join([*parts, self.text[at:]])


def with_field(text: str, opening: int, name: str, value: str) -> str:
    """Return the JSON object *text* with one more field in front; *opening* is the place behind its brace."""
    return f"{text[:opening]}{json.dumps(name)}:{json.dumps(value)},{text[opening:]}"


def read(body: bytes, shape: Shape = CHAT) -> ChatRequest:
    """
    Find the messages of a request of this *shape*.

    Raises:
        Unreadable: it is not JSON, or has no list of messages, each an object.
    """
    try:
        text = body.decode()
        return _scanned(text, shape)
    except (ValueError, IndexError, RecursionError):
        raise Unreadable("the body is not a chat request") from None


def _scanned(text: str, shape: Shape) -> ChatRequest:
    opening = _token(text, 0, "{")
    fields: dict[str, Any] = {}
    starts: list[int] = []
    closing, at, bare = 0, opening, False
    while True:
        name, at = _DECODER.raw_decode(text, _token(text, at, '"') - 1)
        at = _token(text, at, ":")
        start = _after_space(text, at)
        if name == shape.listed and shape is RESPONSES and text[start] == '"':
            fields[name], at = _DECODER.raw_decode(text, start)
            starts, closing, bare = [start], at, True
        elif name == shape.listed:
            fields[name], starts, closing, at = _list(text, at)
            bare = False
        else:
            fields[name], at = _DECODER.raw_decode(text, _after_space(text, at))
        at = _after_space(text, at)
        if text[at] != ",":
            break
        at += 1
    if text[at] != "}" or _after_space(text, at + 1) != len(text):
        raise Unreadable("the body is not one object")
    messages = [{"role": "user", "content": fields[shape.listed]}] if bare else fields.get(shape.listed)
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise Unreadable("the body has no messages")
    return ChatRequest(text, fields, messages, opening, starts, closing, shape, bare)


def _list(text: str, at: int) -> tuple[list[Any], list[int], int, int]:
    """Return ``(items, where each begins, the place of the closing bracket, the place behind it)``."""
    items: list[Any] = []
    starts: list[int] = []
    at = _after_space(text, _token(text, at, "["))
    if text[at] == "]":
        return [], [], at, at + 1
    while True:
        at = _after_space(text, at)
        starts.append(at)
        item, at = _DECODER.raw_decode(text, at)
        items.append(item)
        at = _after_space(text, at)
        if text[at] == "]":
            return items, starts, at, at + 1
        at = _token(text, at, ",")


def _token(text: str, at: int, wanted: str) -> int:
    """Return the place behind the sign *wanted*, which must be next."""
    at = _after_space(text, at)
    if text[at] != wanted:
        raise Unreadable(f"{wanted} was expected")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


STORE, NEW = "store", "new"  # a history from before this memory is stored whatever it is, or not at all
_OFF = frozenset(("off", "no", "false", "0", "none"))


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """
    The user and the conversation that a request names, ``None`` where it does not, and whether to store and recall.

    ``follows`` is the reply that the request goes on from, ``rating`` what the user thought of the last one.
    ``held``: the model's server holds the history, and the request shows what is new.  ``history``: ``whole`` when the
    client shows everything, ``store`` when a history from before the memory shall be taken in whatever it is, ``new`` when it
    shall not.  ``request`` is the idempotency key, hashed.
    """

    user: str | None
    conversation: str | None
    store: bool = True
    recall: bool = True
    rating: float | None = None
    follows: str | None = None
    held: bool = False
    history: frozenset[str] = frozenset()
    request: str = ""

    @property
    def switched_off(self) -> list[str]:
        """``store`` and ``recall``, where the request does not want them."""
        return [name for name, wanted in (("store", self.store), ("recall", self.recall)) if not wanted]


def memory_options(
    fields: Mapping[str, Any], headers: Mapping[str, str], grant: Grant, shape: Shape = CHAT
) -> MemoryOptions:
    """
    Read the options from the *headers* and *fields* of a request, within what the key allows.

    The headers of hosts name users and conversations only where the key is not one user's own.
    """
    host = next((host for host in HOSTS if host.sent(headers)), None)
    metadata = fields.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    body = (fields.get("safety_identifier"), fields.get("user"), inner.get("user_id"))
    conversation = fields.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    named, follows = named_by_header(headers, "conversation"), fields.get("previous_response_id")
    named = _unless_template(named) or (host.conversation(headers) if host is not None else None)
    user = _unless_template(grant.user)
    if user is None and host is not None and grant.user is None:
        user = host.user(headers)
    places = (named, inner.get("conversation_id"), conversation, None if shape is RESPONSES else follows)
    neither = _is_off(headers.get("x-memory", headers.get("x-holdfast-memory")))
    return MemoryOptions(
        user=user or (None if grant.user else _first_name(body)),
        conversation=_first_name(places),
        store=not neither and not _is_off(named_by_header(headers, "store")),
        recall=not neither and not _is_off(named_by_header(headers, "recall")),
        rating=None if neither else _rating(named_by_header(headers, "rating") or ""),
        follows=_first_name((follows,)) if shape is RESPONSES else None,
        history=_history_shown(named_by_header(headers, "history") or "", host),
        request=sha256(key.encode()).hexdigest()[:16] if (key := headers.get("idempotency-key")) else "",
        held=shape is RESPONSES and _first_name((conversation, follows)) is not None,
    )


def _history_shown(given: str, host: Host | None) -> frozenset[str]:
    """Return the words of a header about the history, and ``whole`` for a program that always shows all of it."""
    return frozenset(given.lower().replace(",", " ").split()) | ({"whole"} if host and host.whole else frozenset())


def _rating(given: str) -> float | None:
    """Return the rating of a header; what is none goes to the log, as no chat shall fail for it."""
    score = parse_rating(given)
    if given and score is None:
        _log.warning("X-Memory-Rating: %.20r is no rating; it is up, down, or a number from 0 to 1", given)
    return score


@dataclass(frozen=True, slots=True)
class Host:
    """
    A chat program that names its users and conversations in its own headers; the first that is present counts.

    ``whole``: it shows the whole conversation with every request.
    """

    name: str
    users: tuple[str, ...]
    conversations: tuple[str, ...]
    whole: bool = False

    def sent(self, headers: Mapping[str, str]) -> bool:
        """Whether a request is from this program."""
        return any(_unless_template(headers.get(name)) for name in (*self.users, *self.conversations))

    def user(self, headers: Mapping[str, str]) -> str | None:
        """Return the name of the user."""
        return self._first(headers, self.users)

    def conversation(self, headers: Mapping[str, str]) -> str | None:
        """Return the name of the conversation."""
        return self._first(headers, self.conversations)

    @staticmethod
    def _first(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
        found = (_unless_template(headers.get(name)) for name in names)
        return next((unquote(name, errors="replace") for name in found if name), None)


HOSTS = (
    Host("Open WebUI", ("x-openwebui-user-id", "x-openwebui-user-email"), ("x-openwebui-chat-id",), whole=True),
    Host("LiteLLM", ("x-litellm-customer-id", "x-litellm-end-user-id"), ("x-litellm-session-id",)),
)


def _unless_template(name: str | None) -> str | None:
    """Return a name, unless it is empty or a placeholder that the chat program left as it is: all users would be one."""
    return None if not name or (name.startswith("{{") and name.endswith("}}")) else name


def header_name(name: str) -> str:
    """Encode *name* for a header."""
    return quote(name, safe=" !#$&'()*+,/:;=?@[]^`{|}~")


def _first_name(values: tuple[Any, ...]) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _is_off(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _OFF


_ENOUGH = 3
_EARLY_CHARS, _NEAR_CHARS, _LABEL_CHARS = 300, 200, 700
_READ_CHARS = 6_000  # of the beginning and of the end of a prompt

# Where chat programs name the task of a request, and how the names of such tasks look.
TASK_HEADERS = ("x-openwebui-task", "x-task", "x-request-purpose", "x-request-type", "x-holdfast-task", "x-memory-task")
TASK_FIELDS = ("task", "task_type", "purpose", "request_type", "generation_name", "feature")
_TASKS = {
    "title": r"title|topic|chat.?name|conversation.?name|rename|thread.?name",
    "tags": r"tags?|categor",
    "follow-ups": r"follow.?ups?|suggest",
    "query": r"quer(?:y|ies)|search|condense|rephrase|retrieval",
    "autocomplete": r"auto.?complet|completion.?hint|fill.?in|fim",
    "emoji": r"emoji|expression|emotion",
    "image-prompt": r"image.?prompt|picture",
    "memory": r"memor(?:y|ies)|facts?\b|extract",
    "summary": r"summar|compact|condens",
    "moderation": r"moderat|guard|safety|classif",
    "functions": r"function.?call|tool.?select|moa.?response",
}
_TASK_NAME = {kind: expression(names, re.IGNORECASE) for kind, names in _TASKS.items()}

# What the instruction asks for; the words of several languages.
_ASKS = {
    "title": r"\b(?:title|headline|topic name|name (?:this|the following) (?:chat|conversation)|subject line|chat name|thread name|name (?:for|to) (?:the|this|our) (?:chat|conversation|discussion|thread|session)|(?:chat|conversation|thread|session|this|it) a (?:short )?name"
    r"|2-3 word|conversation topic|titel|überschrift|título|titre|titolo)\b|标题|標題|主题|主題|题目|제목|タイトル|заголовок",
    "tags": r"(?<!> )\b(?:tags?|keywords? categor|categories|categoriz\w+|hashtags?|labels?|schlagwörter|etiquetas|étiquettes)\b|标签|標籤|태그|タグ",
    "follow-ups": r"\b(?:follow[- ]?up (?:questions|prompts|suggestions)|suggest(?:ed|ions?)? (?:repl|question|prompt|respons)\w*|(?:next|likely|relevant|three|3|most likely) questions?|questions? (?:that )?(?:the |a )?(?:user|human)s? (?:might|could|would|may|can)"
    r"|folgefragen|preguntas de seguimiento|questions de suivi)\b|后续问题|追问|推荐问题|후속 질문|フォローアップ",
    "query": r"\b(?:search quer(?:y|ies)|standalone (?:question|query)|web search|search terms|search engine|retrieval quer(?:y|ies)|queries to (?:search|retrieve)|necessity of a search|rephrase the (?:follow[- ]?up|question|user)\w*|suchanfragen?|consultas? de búsqueda|requêtes? de recherche)\b|搜索(?:查询|关键词|词)|检索|独立的?问题|검색어|検索",
    "autocomplete": r"\b(?:autocomplet\w+|auto-complet\w+|continue the (?:text|input|message|sentence)|complete the (?:user'?s? )?(?:text|input|message|sentence|code)|finish the user'?s (?:text|input|message|sentence)|predict what the user|next words)\b|自动补全|补全|자동 완성",
    "emoji": r"\b(?:emojis?|emotions?|sentiment of the last|facial expression|expression label)\b|表情",
    "image-prompt": r"\b(?:image (?:generation )?prompt|prompt for (?:an? )?(?:image|picture|stable diffusion|dall-?e)|comma-delimited list|comma-separated list of (?:keywords|tags) (?:that )?describ\w+|describe the (?:scene|appearance)|detailed (?:visual )?description for (?:an )?image|generating an image)\b|绘画提示|图像提示",
    "memory": r"\b(?:(?:extract|identif|collect|record|updat|stor|manag)\w*,? .{0,80}\b(?:facts?|memor(?:y|ies)|preferences|personal (?:information|details)|information about the user)|personal information organi[sz]er|memory (?:manager|extraction|agent)|new facts|long-?term memor(?:y|ies)|remember about the user)\b|提取.{0,10}(?:事实|记忆|信息)|记忆",
    "summary": r"\b(?:summar(?:y|ies|i[sz]e|i[sz]ing|i[sz]ation)|compact(?:ion|ing)?|condense|zusammenfassung|fasse|resumen|resume|résumé|résume)\b|总结|總結|摘要|概括|요약|要約",
    "moderation": r"\b(?:unsafe content|content (?:policy|safety|moderation)|safety (?:policy|categor\w+|assessment)|harmful|moderat(?:e|ion|or)|violat\w+|jailbreak|prompt injection|'?safe'? or '?unsafe'?)\b",
}  # fmt: skip
_KIND = {kind: expression(words, re.IGNORECASE | re.DOTALL) for kind, words in _ASKS.items()}

# The conversation as the thing to work on.
_CONVERSATION = expression(
    r"\b(?:chat history|conversation history|message history|(?:the|this|our|a|of|following|above|entire|previous|prior|user'?s|given|new|long|these|current|ongoing|provided|new lines of|each) (?:\w+ )?(?:conversation|chat|dialog(?:ue)?|discussion|transcript|thread|messages?|session|exchange|interaction|story|context)\b|conversations?\b(?= (?:between|so far|above|below|with|topic|context))|first message|last (?:user )?message|user(?:'s)? (?:message|query|input|prompt|first|question)|lines of conversation|(?:chat|conversation) titles?"
    r"|gesprächs?|unterhaltung|chatverlauf|conversaci[oó]n|conversation|diálogo|discussion)\b|对话|對話|会话|會話|聊天|用户的?(?:输入|消息|问题)|上下文|대화|会話|диалог|чат",
    re.IGNORECASE,
)
# Rules for an answer that a program reads.
_RULES = expression(
    r"\b(?:(?:only|just|nothing but|exclusively) (?:with )?(?:the |a |one |your )?(?:\w+ )?(?:title|json|tags?|questions?|quer(?:y|ies)|emoji|list|word|name|label|summary|text|prompt|single|standalone|completion|keyword|array|object|category|memory|facts?|following|or)\b"
    r"|(?:respond|reply|answer|return|output|print|give|write|produce|provide|start)(?: \w+){0,4} (?:only|solely|exclusively|strictly|directly|in (?:valid |raw )?json|(?:valid |raw |a )?json|xml|the title only)\b|(?:title|json|list|name|tags|query) only\b|json (?:format|object|array|schema|list|string)|as (?:a |valid |raw )*json"
    r"|(?:no|without(?: any)?|avoid|omit(?:ting)?|do not (?:use|include|add|output|provide|answer|respond|reply|continue)|don't (?:use|include|add|answer|respond|explain)|never (?:use|include|answer)|not include)(?: \w+){0,3} (?:quot\w*|punctuation|explanation\w*|preamble|lead-?in|prefix\w*|introduction|additional|formatting|colons?|text|commentary|markdown|the question|to (?:the|any)|anything|other)"
    r"|no (?:quotes|punctuation|preamble|explanations?|commentary)|nothing else|and nothing more|(?:in|at most|of|under|max(?:imum)?(?: of)?|up to|than|within|exactly|into|to|a|concise,?|be|-) ?(?:\d+|two|three|four|five|six|seven|eight|ten)(?: ?(?:-|to|or|–) ?(?:\d+|four|five|six|seven|eight|ten))?[- ]words?\b|\d+[- ]?(?:words?|characters?|chars)\b(?:[- ]or[- ](?:less|fewer)| max(?:imum)?| or under)?|go straight to|just one word|one of the following|single (?:word|line|sentence)|for future context|to be used as (?:a )?context|your task is to|you must (?:only )?(?:output|respond|return)|ignore (?:all )?previous instructions"
    r"|nur (?:den|mit|die)|ohne (?:anführungszeichen|erklärung)|solo (?:el|con|la)|sin (?:comillas|explicaci)|uniquement|sans (?:guillemets|explication))|不要|不超过|以内|只(?:返回|输出|回复|需)|直接返回|仅(?:返回|输出)|没有.{0,6}则|만 (?:출력|반환|답)|따옴표 없이|のみ|だけ",
    re.IGNORECASE,
)  # fmt: skip
_NO_LIMIT = expression(
    r"(?:\d+|two|three|four|five|six|seven|eight|ten)[- ]?(?:words?|characters?|chars)", re.IGNORECASE
)
_FOR_PROGRAMS = expression(
    r"\b(?:go straight to|(?:without|omit|skip|no)(?: any| the)? (?:\w+ )?(?:lead-?in|preamble|prefix)|your task is to|for future context|as (?:a )?prompt for|ignore (?:all )?previous instructions|exclusively with)|直接返回|没有主题"
    r"|^(?:the )?(?:name|title|chat title|topic|summary)(?: is)?\s*[:：]\s*\Z",  # the answer is to go on from there
    re.IGNORECASE | re.MULTILINE,
)
# What some programs write, whole: nothing else tells a quoted message from one that the user quotes.
_PROMPTS = {
    "title": expression(
        r"\A\s*(?:based on the chat history, give this conversation a name\.\s+keep it short\b"
        r"|(?:summari[sz]e|write|generate) (?:this )?in (?:an? )?\d+-word title\. (?:give|return|output) the title only\.\s*(?:here is the message:?\s*)?[\"“'])",
        re.IGNORECASE,
    )
}
# Instructions to label what the user says in a few words, without an answer; examples of labels may follow.
_LABEL = tuple(
    expression(words, re.IGNORECASE)
    for words in (
        r"\b(?:summari[sz]e|title|label|names? the topic of)\b.{0,40}\b(?:the )?user'?s?'? (?:first |last )?(?:requests?|quer(?:y|ies)|questions?|messages?|prompts?)\b",
        r"\b(?:(?:\d+|two|three|four|five|six|seven|eight|ten) words? or (?:less|fewer)|(?:at most|under|within|up to) (?:\d+|three|four|five|six|ten) words|\d ?(?:-|–|to) ?\d+ words?)\b",
        r"\b(?:(?:do not|don't|never|not)(?: try to| directly)? answer|(?:output|return|respond with|reply with) only (?:the |a )?(?:title|summary|label))\b",
    )
)
# A conversation laid out within the prompt, and the parts of prompts.
_TAGGED = expression(
    r"<(?:chat_history|conversation|chat|messages|history|transcript|dialog(?:ue)?|context|text|user_message|new_messages|previous_summary)>|<BEGIN (?:CONVERSATION|UNSAFE)",
    re.IGNORECASE,
)
_HEADED = expression(
    r"^(?:#{1,4} ?)?(?:chat history|conversation(?: history)?|current conversation|new lines of conversation|transcript|messages|user message)\s*:?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_PARTS = expression(
    r"^#{1,4} ?(?:task|guidelines|output|instructions?|examples?|response format|rules)\b", re.IGNORECASE | re.MULTILINE
)
_TALK = expression(
    r"^\W{0,3}(?:user|assistant|human|ai|system|用户|助手|Q|A)\W{0,3}[:：]|\"role\"\s*:\s*\"(?:user|assistant)\"",
    re.IGNORECASE | re.MULTILINE,
)
_FILL = expression(r"<\|?(?:fim_prefix|fim_suffix|fim_middle|PRE|SUF|MID)\|?>|\[(?:SUFFIX|PREFIX)\]|<\|fim_")


def auxiliary_task(fields: Mapping[str, Any], headers: Mapping[str, str], shape: Shape = CHAT) -> str:
    """
    Return what a chat program wants from the model for itself ("title", "tags", …); empty for a chat of the user.

    A request with the header ``X-Memory: on`` is a chat of the user whatever it looks like.
    """
    if headers.get("x-memory", headers.get("x-holdfast-memory", "")).strip().lower() == "on":
        return ""
    named = _named(fields, headers)
    if named:
        return named
    listed = fields[shape.listed]
    messages = shape.texts(fields, [{"role": "user", "content": listed}] if isinstance(listed, str) else listed)
    asked = next((index for index in range(len(messages) - 1, -1, -1) if messages[index][0] != "assistant"), None)
    if asked is None:
        return ""
    role, last = messages[asked]
    if _FILL.search(last):
        return "autocomplete"
    known = next((kind for kind, shape_of in _PROMPTS.items() if shape_of.search(last)), "")
    told = "\n".join(text for other, text in messages if other in INSTRUCTIONS)
    if known or _labels(told):
        return known or "title"
    found = _judge(last, small=_answer_is_short(fields), after=asked > 1, by_program=role in INSTRUCTIONS)
    if not found and asked <= 2 and not any(other == "assistant" for other, _ in messages):
        found = _judge(told, small=_answer_is_short(fields), holds=last, by_program=True) if told else ""
    return found


def _labels(told: str) -> bool:
    """Whether instructions want a label of what the user says and no answer, right at their beginning."""
    return all(words.search(told[:_LABEL_CHARS]) for words in _LABEL)


def _named(fields: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the task that a header or the metadata name."""
    metadata = fields.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    names = [headers.get(name) for name in TASK_HEADERS] + [inner.get(name) for name in TASK_FIELDS]
    for name in names:
        if isinstance(name, str) and name:
            for kind, pattern in _TASK_NAME.items():
                if pattern.search(name):
                    return kind
    return "declared" if inner.get("auxiliary") is True else ""


def _judge(text: str, *, small: bool, holds: str = "", after: bool = False, by_program: bool = False) -> str:
    """
    Return the task that an instruction sets; empty when too little speaks for one.

    Args:
        text: the instruction.
        small: the request wants a short answer, or one with a schema.
        holds: another message that the instruction is about.
        after: a conversation stands before it in the request.
        by_program: the instruction is the system's, which no user writes.
    """
    whole = text if len(text) <= 2 * _READ_CHARS else f"{text[:_READ_CHARS]}\n{text[-_READ_CHARS:]}"
    instruction = _without_talk(whole)
    kind, place = _first_kind(instruction)
    about = _CONVERSATION.search(instruction)
    laid_out = 2 * bool(_TAGGED.search(whole) or _PARTS.search(whole)) or int(bool(_HEADED.search(whole)))
    if not kind or not (about or laid_out):
        return ""
    if holds and (about is None or place > _EARLY_CHARS or abs(about.start() - place) > _NEAR_CHARS):
        return ""  # the instructions of a bot that also titles or summarizes
    points = laid_out + bool(about) + _rules(instruction) + (len(_TALK.findall(f"{whole}\n{holds}")) > 1)
    return kind if points + after + small + by_program >= _ENOUGH else ""


def _rules(instruction: str) -> int:
    """Weigh the rules for the answer: 2 when only programs write so; a number of words alone is none."""
    if _FOR_PROGRAMS.search(instruction):
        return 2
    return int(any(not _NO_LIMIT.search(found.group()) for found in _RULES.finditer(instruction)))


def _first_kind(instruction: str) -> tuple[str, int]:
    """Return what is asked for first, and where; a summary only when nothing else is."""
    places = sorted((found.start(), kind) for kind, words in _KIND.items() if (found := words.search(instruction)))
    chosen = next((one for one in places if one[1] != "summary"), next(iter(places), (0, "")))
    return chosen[1], chosen[0]


def _without_talk(text: str) -> str:
    """Leave out the lines of the conversation that the prompt holds."""
    kept, within = [], False
    for line in text.split("\n"):
        if re.match(
            r"\s*<(?:chat_history|conversation|history|messages|transcript|chat|dialogue)>", line, re.IGNORECASE
        ):
            within = True
        if not within and not _TALK.match(line):
            kept.append(line)
        if re.search(
            r"</(?:chat_history|conversation|history|messages|transcript|chat|dialogue)>", line, re.IGNORECASE
        ):
            within = False
    return "\n".join(kept)


def _answer_is_short(fields: Mapping[str, Any]) -> bool:
    limits = (fields.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens"))
    most = next((limit for limit in limits if limit is not None), None)
    text = fields.get("text")
    form = fields.get("response_format", text.get("format") if isinstance(text, Mapping) else None)
    wants = isinstance(form, Mapping) and form.get("type") in ("json_schema", "json_object")
    return wants or (isinstance(most, int) and not isinstance(most, bool) and 0 < most <= 100)
