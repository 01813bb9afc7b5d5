"""Commands about one user: conversations, facts, corrections, consent, export."""
