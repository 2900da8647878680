"""The program ``sumgp``: finds the command, and turns every expected failure into one line and an exit code.

What help says of the commands stands in ``commands.toml``, so that it is shown without loading them.
"""

from __future__ import annotations

import _thread
import gc
import io
import sys
import threading
import tomllib
import traceback
from collections.abc import Sequence
from importlib import import_module, resources
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from sumgp.errors import SumGPError
from sumgp.version import VERSION

USAGE = 2  # exit code of wrong usage or data
INTERRUPTED = 130  # what shells give a program that was stopped with Ctrl-C
# New objects between two searches for unreachable ones. Python's 700 spend .4 s of CPU on searches while libraries load.
SOON = 0.01  # seconds after which a lost Ctrl-C is pressed again: the hook that heard of it is over
BETWEEN_SEARCHES = 100_000

# A module is imported only when its command runs or its help is shown.
COMMANDS = tomllib.loads(resources.files("sumgp.cli").joinpath("commands.toml").read_text(encoding="utf-8"))
FIRST_STEPS = ("sumgp demo", COMMANDS["fit"]["examples"][0], COMMANDS["check"]["examples"][0], "sumgp fit --help")

# Typer may bring its own copy of click: the class of all usage errors is reached through a public one.
UsageProblem: Any = typer.BadParameter.__mro__[2]


# Both names of the help option, for the program and for each of its commands.
CONTEXT = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """The commands, each loaded when it is run; the list of them in the help page needs none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name]["summary"]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = {name: self.get_command(ctx, name) for name in COMMANDS}  # what typos are compared with
        name, _, rest = super().resolve_command(ctx, args)
        return name, _loaded(str(name)), rest


def _loaded(name: str) -> Any:
    """The command with its options, from its module."""
    module, function = COMMANDS[name]["load"].split(":")
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    epilog = examples_text(COMMANDS[name]["examples"])
    single.command(name, epilog=epilog, context_settings=CONTEXT)(getattr(import_module(module), function))
    return typer.main.get_command(single)


def examples_text(examples: Sequence[str]) -> str:
    """The block below a help page; empty lines keep the examples on lines of their own."""
    return "\n\n".join(["Examples:", *(f"  {example}" for example in examples)])


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sumgp {VERSION}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings=CONTEXT,
    epilog=examples_text(FIRST_STEPS),
)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Gaussian-process regression whose predictions obey a law you know."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: 0 good, 2 wrong usage or data with a one-line reason, 130 stopped by Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows ASCII only gets \\u2212 in place of the sign, not a traceback after the work is done.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.unraisablehook = press_again
    gc.set_threshold(BETWEEN_SEARCHES)
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    sys.exit(run([word for word in given if word != "--debug"], debug))


def press_again(lost: sys.UnraisableHookArgs) -> None:
    """Ctrl-C within a compiled module that cannot pass it on would print a traceback and be forgotten."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(SOON, _thread.interrupt_main).start()  # not here, where it would be lost as well
    else:
        sys.__unraisablehook__(lost)


def run(arguments: Sequence[str], debug: bool = False) -> int:
    """The exit code of a call; ``--debug`` may stand anywhere on the line and is taken out before."""
    try:
        result: Any = typer.main.get_command(app).main(args=list(arguments), prog_name="sumgp", standalone_mode=False)
        # Typer itself catches Ctrl-C and gives back this code without a word.
        return _stopped(list(arguments), debug) if result == INTERRUPTED else int(result or 0)
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(list(arguments), debug)
    except UsageProblem as error:
        return _failed(error.format_message(), debug)
    except (SumGPError, OSError, MemoryError) as error:
        return _failed(_reason(error), debug)


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory; use fewer rows or points"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _stopped(words: list[str], debug: bool) -> int:
    command = COMMANDS.get(next((word for word in words if not word.startswith("-")), ""), {})
    remedy = command.get("after_stop", "run the same command again to start over")
    return _ended(f"stopped; no file is half written. Next: {remedy}", "bold yellow", INTERRUPTED, debug)


def _failed(reason: str, debug: bool) -> int:
    return _ended(f"error: {one_line(reason)}", "bold red", USAGE, debug)


def _ended(text: str, style: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    Console(stderr=True, soft_wrap=True).print(text, markup=False, highlight=False, style=style)
    return code


def one_line(reason: str) -> str:
    """The reason on one line; a formula with a mark below it becomes the formula and the mark's place.

    >>> one_line("z: unknown name" + chr(10) + "    a + z = 1" + chr(10) + "        ^")
    "z: unknown name (in 'a + z = 1', character 5)"
    """
    lines = reason.splitlines()
    if len(lines) == 3 and set(lines[2].strip()) == {"^"}:
        indent = len(lines[1]) - len(lines[1].lstrip())
        return f"{lines[0]} (in {lines[1].strip()!r}, character {lines[2].index('^') - indent + 1})"
    return " ".join(reason.split())


if __name__ == "__main__":
    main()
