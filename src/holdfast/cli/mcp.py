"""``holdfast mcp``."""

from __future__ import annotations

from importlib import import_module

from . import models
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, USER, Bot, Org, Store, Subject, User, commands, writing
from .plain import CommandError

app = commands()


@app.command()
def mcp(
    llm: Llm = None,
    base_url: BaseUrl = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
) -> int:
    """
    Give an assistant the memory of one user as tools, over standard input and output.

    For programs that start a server of the Model Context Protocol by a command. One that is reached by its
    address is part of `holdfast serve`, at /mcp.

    \b
    Examples:
      holdfast mcp --user ana
      holdfast mcp --store ~/memory.db --user ana --bot desk
    """
    try:
        tools = import_module("holdfast.server.mcp")
    except ImportError as error:
        raise CommandError(
            "not-installed",
            f"the tools need {error.name or 'a package'}, which is not installed",
            hint="pip install 'holdfast[server]'",
            exit_code=3,
        ) from error
    whose = tools.MemoryOwner(user, org, bot, subject)
    with models.model(llm, base_url) as model, writing(store, model, background=True) as memory:
        tools.tools(memory, lambda _context: whose).run("stdio")
    return 0
