"""Memory around a call that takes messages: what `with_memory` is made of."""
