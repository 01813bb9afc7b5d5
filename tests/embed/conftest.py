import pytest

from holdfast.embed import Embedder, default_embedder


@pytest.fixture(scope="session")
def minilm() -> Embedder:
    """The built-in embedder; a build that could not fetch it cannot pass these tests."""
    embedder = default_embedder()
    assert embedder is not None, "the embedding model is missing: reinstall with a network, then test again"
    return embedder
