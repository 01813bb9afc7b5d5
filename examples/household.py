"""
A household with two pets: what is said about one is never taken for the other.

    pip install holdfast
    python examples/household.py

It needs no model: what a model would be shown is printed.
"""

from __future__ import annotations

import os

from holdfast import Memory

OWNER = "elena"


def main() -> None:
    """Talk about two pets in several places, and show who is known to have what."""
    with Memory(os.environ.get("HOLDFAST_STORE", "household.db")) as memory:
        elena = memory.user(OWNER)
        elena.subject("pet-1", name="Luna", aliases=("my dog",))  # the ids of your own tables
        elena.subject("pet-2", name="Max", aliases=("my cat",))

        home = memory.conversation("home", user=OWNER)
        home.record("I'm vegetarian. My dog is allergic to chicken.", "I'll keep that in mind.")

        luna = memory.conversation("vet-luna", user=OWNER, subject="pet-1")
        luna.record("She is 4 years old. She weighs 12 kg.", "A good weight.")
        luna.record("She has been limping on her left front leg since Friday.", "Rest her for three days.")
        luna.end()

        cat = memory.conversation("vet-max", user=OWNER, subject="pet-2")
        cat.record("He is 9 years old. He has kidney disease.", "Then let's look at his diet.")
        cat.end()
        memory.digest()  # a program that keeps running uses Memory(…, background=True) instead

        print("What is known, by whom it is about")
        for subject in elena.subjects():
            print(f"  {subject.name}")
            for fact in elena.facts():
                if fact.subject == subject.id:
                    print(f"    {fact.text}")

        print("\nA new visit with Luna begins with")
        visit = memory.conversation("vet-luna-2", user=OWNER, subject="pet-1")
        context = visit.context("We're back. What should she eat, and is the leg better?")
        for section in context.sections:
            if section.name in ("earlier", "facts"):
                print("\n".join(f"    {line}" for line in section.text.splitlines()))

        found = memory.user(OWNER, subject="pet-2").search("Who has been limping?", kinds=["message"])
        print("\nSaid of Max:", *[f"    {hit.text}" for hit in found if hit.speaker == "user"], sep="\n")


if __name__ == "__main__":
    main()
