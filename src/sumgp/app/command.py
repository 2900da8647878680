"""``sumgp app``: the page in the browser, served to this machine alone."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console

from sumgp.errors import DataError, SumGPError

HOST = "127.0.0.1"


def app(
    port: Annotated[int, typer.Option(help="Port on this machine; a free one if left out.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser, where there is one.")] = True,
) -> None:
    """Open a page in the browser to fit a table under a law, step by step; stop it with Ctrl-C."""
    try:
        import uvicorn

        from sumgp.app.server import application
        from sumgp.app.store import Limits, Workspace
    except ImportError as error:
        raise SumGPError(f"app: {error.name} is not installed; install sumgp with the extra 'app': sumgp[app]") from error
    listening = _socket(port)
    port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
    address = f"http://{HOST}:{port}/?token={token}"
    workspace = Workspace(Limits())
    server = uvicorn.Server(
        uvicorn.Config(
            application(workspace, port, token), log_level="warning", access_log=False, server_header=False, lifespan="off"
        )
    )
    console = Console(soft_wrap=True)
    console.print(f"open {address}", markup=False, highlight=False)
    console.print("for you on this machine only; stop with Ctrl-C", markup=False, highlight=False)
    sys.stdout.flush()
    try:
        # The server also returns without an interrupt, where the program that started this one had interrupts switched off.
        with suppress(KeyboardInterrupt):
            if browser and _has_screen():
                webbrowser.open(address)
            server.run(sockets=[listening])
        console.print("stopped; the files of this run are removed", markup=False, highlight=False)
    finally:
        workspace.close()
        listening.close()


def _socket(port: int) -> socket.socket:
    """A socket on the loopback address, which other machines cannot reach."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen()  # a browser that is quicker than the server waits instead of being refused
    except (OSError, OverflowError) as error:
        made.close()
        raise DataError(f"--port: {port} cannot be used ({error}); choose another or leave it out") from error
    return made


def _has_screen() -> bool:
    """Without one, a browser for the terminal could take it over."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
