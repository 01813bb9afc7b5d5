"""
Markdown of messages as HTML.  Pure.

Whatever a message holds is escaped: tags come from this file alone.  No HTML of a message passes, pictures become links, and a
link leads to ``http``, ``https`` or ``mailto`` and tells the other side nothing.  Every pattern takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from ....text import expression

MAX_CHARS = 60_000  # a longer text is shown as it is
MAX_DEPTH = 4  # of lists and quotations in one another
_ADDRESS = expression(r"(?:https?://|mailto:)[^\s\x00-\x20\x7f<>\"]+", re.IGNORECASE)
_FENCE = expression(r" {0,3}(`{3,}|~{3,})[^`]*$")
_HEADING = expression(r" {0,3}#{1,6} +(\S.*)$")
_RULE = expression(r" {0,3}(?:-{3,}|\*{3,}|_{3,})$")
_ITEM = expression(r"( {0,12})(?:([-*+])|(\d{1,9})[.)]) (.*)$")
_INLINE = expression(
    r"`(?P<code>[^`\n]+)`"
    r"|!\[(?P<alt>[^\[\]\n]*)\]\((?P<source>[^()\s]+)\)"
    r"|\[(?P<label>[^\[\]\n]+)\]\((?P<address>[^()\s]+)\)"
    r"|(?P<bare>\bhttps?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?()\[\]{}*_~])"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|(?<!\w)__(?P<strong>[^_\n]+)__(?!\w)"
    r"|~~(?P<gone>[^~\n]+)~~"
    r"|(?<![\w*])\*(?P<em>[^\s*][^*\n]*)\*(?!\w)"
    r"|(?<!\w)_(?P<slanted>[^\s_][^_\n]*)_(?!\w)"
)
_TAGS = {
    "code": Markup("<code>{}</code>"),
    "bold": Markup("<strong>{}</strong>"),
    "strong": Markup("<strong>{}</strong>"),
    "gone": Markup("<s>{}</s>"),
    "em": Markup("<em>{}</em>"),
    "slanted": Markup("<em>{}</em>"),
}
_LINK = Markup('<a href="{}" title="{}" rel="noopener noreferrer nofollow ugc" target="_blank">{}</a>')
_PARAGRAPH = Markup('<p dir="auto">{}</p>')


def render_markdown(text: str) -> Markup:
    """Return *text* as HTML."""
    if len(text) > MAX_CHARS:
        return _PARAGRAPH.format(text)
    return _join(_blocks(text.split("\n"), 0))


def _join(parts: Iterator[Markup]) -> Markup:
    return Markup("").join(parts)


def _blocks(lines: Sequence[str], depth: int) -> Iterator[Markup]:
    """Yield the blocks of *lines*."""
    at, words = 0, []
    while at < len(lines):
        block, after = _block(lines, at, depth)
        if block is None:
            words.append(lines[at])
            at += 1
            continue
        yield from _paragraphs(words)
        words = []
        yield block
        at = after
    yield from _paragraphs(words)


def _block(lines: Sequence[str], at: int, depth: int) -> tuple[Markup | None, int]:
    """Return the block that begins at a line, and the line after it; ``None`` if the line is part of a paragraph."""
    line = lines[at].rstrip()
    if fence := _FENCE.match(line):
        return _code(lines, at, fence[1])
    if heading := _HEADING.match(line):
        return Markup('<p class="heading" dir="auto"><strong>{}</strong></p>').format(_inline(heading[1])), at + 1
    if _RULE.match(line):
        return Markup("<hr>"), at + 1
    if line.lstrip().startswith(">") and depth < MAX_DEPTH:
        return _quotation(lines, at, depth)
    if _ITEM.match(line) and depth < MAX_DEPTH:
        return _list(lines, at, depth)
    if "|" in line and at + 1 < len(lines) and _is_ruler(lines[at + 1]):
        return _table(lines, at)
    return None, at


def _paragraphs(lines: Sequence[str]) -> Iterator[Markup]:
    text = "\n".join(lines).strip("\n")
    for part in re.split(r"\n[ \t]*\n", text):
        if part.strip():
            yield _PARAGRAPH.format(_inline(part.strip("\n")))


def _code(lines: Sequence[str], at: int, fence: str) -> tuple[Markup, int]:
    end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(fence)), len(lines))
    return Markup('<pre dir="auto"><code>{}</code></pre>').format("\n".join(lines[at + 1 : end])), end + 1


def _quotation(lines: Sequence[str], at: int, depth: int) -> tuple[Markup, int]:
    end = at
    while end < len(lines) and lines[end].lstrip().startswith(">"):
        end += 1
    inner = [line.lstrip()[1:].removeprefix(" ") for line in lines[at:end]]
    return Markup("<blockquote>{}</blockquote>").format(_join(_blocks(inner, depth + 1))), end


def _list(lines: Sequence[str], at: int, depth: int) -> tuple[Markup, int]:
    """Return the list that begins at a line; what is indented deeper belongs to the item above."""
    first = _ITEM.match(lines[at])
    assert first is not None
    indent, numbered = len(first[1]), first[3] is not None
    items: list[list[str]] = []
    while at < len(lines):
        item = _ITEM.match(lines[at])
        deep = len(lines[at]) - len(lines[at].lstrip(" "))
        if item is not None and len(item[1]) <= indent:
            if (item[3] is not None) != numbered or len(item[1]) < indent:
                break
            items.append([item[4]])
        elif lines[at].strip() and deep > indent:
            items[-1].append(lines[at][min(deep, indent + 2) :])
        else:
            break
        at += 1
    inner = _join(Markup('<li dir="auto">{}</li>').format(_item(item, depth + 1)) for item in items)
    if numbered:
        return Markup('<ol start="{}">{}</ol>').format(int(first[3]), inner), at
    return Markup("<ul>{}</ul>").format(inner), at


def _item(lines: Sequence[str], depth: int) -> Markup:
    rest = _join(_blocks(lines[1:], depth)) if len(lines) > 1 else Markup("")
    return _inline(lines[0]) + rest


def _is_ruler(line: str) -> bool:
    """Whether the line is that below the head of a table."""
    return "-" in line and "|" in line and not set(line.strip()) - set("|-: ")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _table(lines: Sequence[str], at: int) -> tuple[Markup, int]:
    heads, end = _cells(lines[at]), at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    head = _join(Markup('<th scope="col">{}</th>' if one else "<td>{}</td>").format(_inline(one)) for one in heads)
    rows = _join(
        Markup("<tr>{}</tr>").format(_join(Markup("<td>{}</td>").format(_inline(cell)) for cell in _cells(line)))
        for line in lines[at + 2 : end]
    )
    table = "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    scrolling = '<div class="scroll" tabindex="0" role="group" aria-label="Table in the message">' + table + "</div>"
    return Markup(scrolling).format(head, rows), end


def _inline(text: str) -> Markup:
    """Return a line or a paragraph with its emphasis, code and links."""
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        parts += [Markup.escape(text[at : found.start()]), _marked(found)]
        at = found.end()
    return Markup("").join([*parts, Markup.escape(text[at:])])


def _marked(found: re.Match[str]) -> Markup:
    kind = found.lastgroup or ""
    if kind == "bare":
        return _link(found[0], Markup.escape(found[0]), found[0])
    if kind == "address":
        return _link(found["address"], _inline(found["label"]), found[0])
    if kind == "source":
        return _link(found["source"], Markup("<span>{}</span>").format(found["alt"] or found["source"]), found[0])
    inner = found[kind]
    return _TAGS[kind].format(inner if kind == "code" else _inline(inner))


def _link(address: str, label: Markup, written: str) -> Markup:
    """Return a link; what leads elsewhere than a link may stays as it was *written*."""
    if not _ADDRESS.fullmatch(address):
        return Markup.escape(written)
    return _LINK.format(address, address, label)
