"""Markdown of messages: the table of what is shown how, and what a hostile text cannot do."""

from __future__ import annotations

import re
import time

import pytest

from holdfast.server.pages.workbench.markdown import MAX_CHARS, render_markdown

LINK = ' rel="noopener noreferrer nofollow ugc" target="_blank"'
SHOWN = [
    ("Hi.\nThere.", '<p dir="auto">Hi.\nThere.</p>'),
    ("One.\n\nTwo.", '<p dir="auto">One.</p><p dir="auto">Two.</p>'),
    (
        "**a** *b* __c__ _d_ ~~e~~ `f`",
        "<strong>a</strong> <em>b</em> <strong>c</strong> <em>d</em> <s>e</s> <code>f</code>",
    ),
    ("snake_case_name 2*3*4", "snake_case_name 2*3*4"),
    ("`**a**`", "<code>**a**</code>"),
    ("# Head", '<p class="heading" dir="auto"><strong>Head</strong></p>'),
    ("- a\n- b\n  - c", '<ul><li dir="auto">a</li><li dir="auto">b<ul><li dir="auto">c</li></ul></li></ul>'),
    ("3. a\n4. b", '<ol start="3"><li dir="auto">a</li><li dir="auto">b</li></ol>'),
    ("> a\n> b", '<blockquote><p dir="auto">a\nb</p></blockquote>'),
    ("```py\n<b>*x*\n```\nafter", '<pre dir="auto"><code>&lt;b&gt;*x*</code></pre><p dir="auto">after</p>'),
    ("|a|b|\n|-|-|\n|1|2|", "<tr><td>1</td><td>2</td></tr>"),
    ("---", "<hr>"),
    ("[a](https://b.test/c)", f'<a href="https://b.test/c" title="https://b.test/c"{LINK}>a</a>'),
    ("mail [me](mailto:a@b.test)", '<a href="mailto:a@b.test"'),
    ("See https://b.test/c.", f'<a href="https://b.test/c" title="https://b.test/c"{LINK}>https://b.test/c</a>.'),
    ("![seen](https://b.test/p.png)", '<a href="https://b.test/p.png"'),
]
KEPT = [
    "[a](javascript:x)",
    "[a](data:text/html,x)",
    "[a](//b.test)",
    "[a](/me)",
    "![a](//b.test/x)",
    "[a](vbscript:x)",
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_is_shown(text, shown):
    assert shown in render_markdown(text)


@pytest.mark.parametrize("text", KEPT)
def test_other_addresses_stay_words(text):
    assert render_markdown(text) == f'<p dir="auto">{text}</p>'


@pytest.mark.parametrize(
    "text",
    [
        '<img src=x onerror="y">',
        '[<b>](https://a.test/"onclick="y)',
        '**<i>"</i>**',
        "# <script>y</script>",
        "- <b>\n- '\"",
        "> <b>",
        "|<b>|\n|-|\n|'<i>|",
        "```<b>\n<i>\n```",
        "`<b>`",
        "https://a.test/<b>",
    ],
)
def test_no_tag_and_no_quote_of_a_message_passes(text):
    shown = render_markdown(text)
    ours = r"</?(?:p|strong|em|s|code|pre|ul|ol|li|blockquote|hr|table|thead|tbody|tr|th|td|div|span|a)(?: [\w-]+=\"[^\"<>]*\")*>"
    assert not set("<>") & set(re.sub(ours, "", shown))
    assert "onclick" not in re.findall(r"<[^>]*>", shown).__str__().replace("&#34;onclick", "")


@pytest.mark.parametrize(
    "piece",
    ["*", "**a", "[", "![", "](", "`", "~~", "_a", "> ", "- ", "|", "#", "https://", "  ", "1. ", "[a](", "\n- a\n "],
)
def test_no_text_takes_long(piece):
    text = (piece * MAX_CHARS)[:MAX_CHARS]
    begin = time.process_time()
    render_markdown(text)
    assert time.process_time() - begin < 20.0  # what is not linear takes minutes


def test_a_very_long_text_is_shown_as_it_is():
    assert render_markdown("*a* " * MAX_CHARS).startswith('<p dir="auto">*a* *a*')
