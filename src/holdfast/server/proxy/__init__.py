"""OpenAI's protocol with a memory: any client of it, given another ``base_url``, talks to a model that remembers."""
