"""Conversation memory for chatbots: every turn kept, every fact current, every prompt within budget."""
