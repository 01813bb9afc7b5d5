"""
Decoders of two binary formats that other programs store, which run no code of theirs: MessagePack, and pickles as plain data.

LangGraph writes its checkpoints as MessagePack with objects in extensions; Qdrant's local mode pickles its points.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from typing import Any

_SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I"}
_SIZES |= {0xDE: ">H", 0xDF: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h"}
_NUMBERS |= {0xD2: ">i", 0xD3: ">q"}
_FIXED_EXT = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_DELTA_SNAPSHOT = 7
_MAX_DEPTH = 100
_SIZED = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_UNREADABLE = (
    *(pickle.UnpicklingError, EOFError, AttributeError, IndexError, KeyError, TypeError, ImportError),
    *(MemoryError, OverflowError, RecursionError),
)


def unpack(raw: bytes) -> Any:
    """
    Decode MessagePack; an object of LangGraph's becomes the fields that it was made of.

    Raises:
        ValueError: it is damaged.
    """
    try:
        value, end = _value(raw, 0, 0)
    except (struct.error, IndexError) as error:
        raise ValueError("it ends too early") from error
    if end != len(raw):
        raise ValueError("something follows its end")
    return value


def _value(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    code = raw[at]
    at += 1
    if code <= 0x7F:
        return code, at
    if code >= 0xE0:
        return code - 256, at
    if code <= 0x8F:
        return _map(raw, at, code & 0x0F, depth)
    if code <= 0x9F:
        return _list(raw, at, code & 0x0F, depth)
    if code <= 0xBF:
        return _text(raw, at, code & 0x1F)
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if code in _NUMBERS:
        form = _NUMBERS[code]
        return struct.unpack_from(form, raw, at)[0], at + struct.calcsize(form)
    if code in _FIXED_EXT:
        return _extension(raw, at + 1, raw[at], _FIXED_EXT[code], depth)
    if code not in _SIZES:
        raise ValueError("it holds an unknown code")
    form = _SIZES[code]
    size, at = struct.unpack_from(form, raw, at)[0], at + struct.calcsize(form)
    if code <= 0xC6:
        return _bytes(raw, at, size)
    if code <= 0xC9:
        return _extension(raw, at + 1, raw[at], size, depth)
    if code <= 0xDB:
        return _text(raw, at, size)
    return _list(raw, at, size, depth) if code <= 0xDD else _map(raw, at, size, depth)


def _bytes(raw: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(raw):
        raise ValueError("it ends too early")
    return raw[at : at + size], at + size


def _text(raw: bytes, at: int, size: int) -> tuple[str, int]:
    value, end = _bytes(raw, at, size)
    return value.decode("utf-8", "replace"), end


def _list(raw: bytes, at: int, size: int, depth: int) -> tuple[list[Any], int]:
    values = []
    for _ in range(size):
        value, at = _value(raw, at, depth + 1)
        values.append(value)
    return values, at


def _map(raw: bytes, at: int, size: int, depth: int) -> tuple[dict[Any, Any], int]:
    values = {}
    for _ in range(size):
        key, at = _value(raw, at, depth + 1)
        value, at = _value(raw, at, depth + 1)
        values[tuple(key) if isinstance(key, list) else str(key) if isinstance(key, dict) else key] = value
    return values, at


def _extension(raw: bytes, at: int, kind: int, size: int, depth: int) -> tuple[Any, int]:
    """An extension of LangGraph's holds ``[module, class, what it was made of, …]``; of it the last is returned."""
    data, end = _bytes(raw, at, size)
    try:
        value = _value(data, 0, depth + 1)[0]
    except (ValueError, IndexError, struct.error):
        return data, end  # an extension of another program
    if kind == _DELTA_SNAPSHOT or not (isinstance(value, list) and len(value) >= 3):
        return value, end
    made_of = value[2]
    return (made_of | {"class": value[1]} if isinstance(made_of, dict) else made_of), end


class PlainObject:
    """An object of a pickle, as the data that was in it: nothing of its class is imported or run."""

    def __init__(self, *args: Any) -> None:
        self.args, self.state = args, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # every class and function that a pickle names is inert
        return PlainObject


def unpickle(raw: bytes) -> Any:
    """
    Decode a pickle to plain data: whatever class or function it names becomes a `PlainObject`, so it runs nothing.

    Raises:
        ValueError: it is damaged.
    """
    try:
        _check_sizes(raw)
        return _PlainUnpickler(io.BytesIO(raw)).load()
    except _UNREADABLE as error:
        raise ValueError(f"it is no pickle that can be read ({type(error).__name__})") from error


def _check_sizes(raw: bytes) -> None:
    """
    Walk a pickle without loading it: what it says of its sizes decides how much memory loading it takes.

    Raises:
        ValueError: it names a position or a size that lies beyond its own length.
    """
    for code, value, _at in pickletools.genops(raw):
        if code.name in _SIZED and value is not None and int(value) > len(raw):
            raise ValueError("it is no pickle that can be read (it says that it is larger than it is)")


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of an unpickled object: of a pydantic model, or of a plain one."""
    state = value.state if isinstance(value, PlainObject) else value
    if isinstance(state, tuple):  # objects with slots: (fields, slots)
        state = next((part for part in state if isinstance(part, dict)), {})
    if isinstance(state, dict) and isinstance(state.get("__dict__"), dict):
        state = state["__dict__"]
    return state if isinstance(state, dict) else {}
