"""A conversation with a model that says what a test wrote down."""

from __future__ import annotations

from holdfast import Config, Memory
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

TALK = [
    ("We met Bo at Meko yesterday, over tteokbokki.", "How nice!"),
    ("I promised Bo to bring Miso along in May.", "Good."),
    ("The ferritin result is 12, the doctor says.", "That is low."),
    ("I'm worried about that.", "Try iron, and test again in six weeks."),
    ("I'll start tomorrow.", "Great."),
]
SUMMARY = """SUMMARY: They met Bo at Meko. The ferritin result is 12, and iron was recommended.
THEMES: Bo; ferritin
CONCERNS: worried about the result
ACTIONS: user: starts iron tomorrow; assistant: test again in six weeks"""
BULLETS = """- First meeting with Bo at Meko over tteokbokki [1]
- Promised Bo to bring Miso along in May [3]
- Ferritin result: 12 [5]"""
COMBINED = f"""{SUMMARY}
EPISODES:
{BULLETS}
FACTS:
health,has_condition,low ferritin,0.9,,add,asserted,state,5,The ferritin result is 12
medication,iron,starts tomorrow,0.5,,set,asserted,state,9,I'll start tomorrow
goal,wants_to,bring Miso along in May,0.9,,add,asserted,state,3,I promised Bo to bring Miso along in May"""


class World:
    """A memory with a scripted model and a clock; one chunk of five exchanges has been said."""

    def __init__(self, script=None, *, chunks=1, **settings):
        self.model, self.clock = ScriptedModel(script), FakeClock()
        self.memory = Memory(embedder=None, llm=self.model, clock=self.clock, config=Config(**settings))
        self.chat = self.memory.conversation("a", user="ana")
        self.user = self.memory.user("ana")
        for _ in range(chunks):
            for text, reply in TALK:
                self.chat.record(text, reply)
        self.chat.record("hello again")  # closes the chunk before it

    def calls(self, *layers):
        return [request.layer for request in self.model.asked if request.layer in layers]

    def bullets(self):
        return {fact.text: [e.seq for e in fact.evidence] for fact in self.chat.episodes()}

    def jobs(self, state=None):
        found = self.memory.jobs(state)
        return [(job.kind, job.key, job.reason) for job in found if job.key or job.reason]

    def later(self):
        self.clock.advance(minutes=3)
        return self.memory.digest()
