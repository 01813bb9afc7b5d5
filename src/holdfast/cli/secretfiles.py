"""
Secrets out of files: ``HOLDFAST_STORE_FILE=/run/secrets/store`` stands for ``HOLDFAST_STORE`` with what the file holds.

Containers get secrets as files, so that no list of processes and no description of a container shows them.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from .plain import CommandError

# The master key of the vault has its own: HOLDFAST_MASTER_KEY_FILE, which is looked at more closely.
NAMES = (
    "HOLDFAST_STORE",
    "HOLDFAST_ADMIN_STORE",
    "HOLDFAST_ROLE_PASSWORD",
    "HOLDFAST_UPSTREAM_API_KEY",
    "HOLDFAST_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
)
_MOST = 65_536


def read_into(environ: MutableMapping[str, str]) -> None:
    """
    Set each of `NAMES` for which a variable with ``_FILE`` at its end names a file; white space around it goes.

    Raises:
        CommandError: a variable is given twice, or its file cannot be read.
    """
    for name in NAMES:
        path = environ.get(f"{name}_FILE", "")
        if not path:
            continue
        if environ.get(name):
            raise CommandError(
                "secret-file", f"{name} and {name}_FILE are both set", hint="unset one of them", exit_code=2
            )
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_MOST).strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            hint = "is it mounted, and may this user read it?"
            raise CommandError("secret-file", f"{name}_FILE: {path}: {why}", hint=hint, exit_code=2) from None
        if not text:
            raise CommandError("secret-file", f"{name}_FILE: {path} is empty", exit_code=2)
        environ[name] = text
        del environ[f"{name}_FILE"]  # it has been followed
