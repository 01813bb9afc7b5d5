"""How every test runs.  Fixtures live beside the tests that use them."""

import os

from hypothesis import settings

# No deadline: how long an example takes says more about the machine's other work than about ours.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
