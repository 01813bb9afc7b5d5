import pytest

from holdfast.embed import Embedder, default_embedder


@pytest.fixture(scope="session", params=["numpy", "onnxruntime"])
def minilm(request) -> Embedder:
    """The built-in embedder by both ways to compute; a build that could not fetch it cannot pass these tests."""
    embedder = default_embedder(request.param)
    assert embedder is not None, "the embedding model is missing: reinstall with a network, then test again"
    return embedder
