"""Progress on a terminal, and silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dpsvm._extras import missing
from dpsvm.warnings import warn_caller

Monitor = Callable[[Mapping[str, Any]], bool]


def _visible() -> bool:
    """Whether there is somewhere to show progress: a terminal on standard error, and rich."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    if (words := missing("rich", "a progress bar")) is not None:
        warn_caller(words, UserWarning)
    return words is None


@contextmanager
def solver_progress(shown: bool = True) -> Iterator[Monitor | None]:
    """A monitor for the solver that keeps one line of standard error up to date, then clears it.

    Gives None, which costs nothing, when progress is not to be shown or there is no terminal.

    >>> with solver_progress(shown=False) as monitor:
    ...     print(monitor)
    None
    """
    if not shown or not _visible():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    # Standard output is left alone: it may be a file while standard error is a terminal.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as display:
        task = display.add_task("training")

        def monitor(progress: Mapping[str, Any]) -> bool:
            display.update(task, description=describe(progress))
            return False

        yield monitor


def describe(progress: Mapping[str, Any]) -> str:
    """One line on how far the solver is.

    >>> describe({"problem": 1, "problems": 45, "iteration": 12000, "gap": 0.25})
    'training  problem 2/45  iteration 12,000  gap 0.25'
    """
    problem = ""
    if progress["problems"] > 1:
        problem = f"  problem {progress['problem'] + 1}/{progress['problems']}"
    return f"training{problem}  iteration {progress['iteration']:,}  gap {progress['gap']:.3g}"


@contextmanager
def runs_progress(
    description: str, total: int | None, shown: bool = True
) -> Iterator[Callable[[], None]]:
    """A function to call after each run.

    total : of the runs; None where it is not known beforehand

    >>> with runs_progress("heart", 2, shown=False) as tick:
    ...     tick()
    """
    if not shown or not _visible():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, redirect_stdout=False) as display:
        task = display.add_task(description, total=total)
        yield lambda: display.advance(task)


Rounds = Callable[[int, str], None]
"""Called with the number of rounds that are over, and with words on what is awaited."""


@contextmanager
def rounds_progress(total: int | None, shown: bool = True) -> Iterator[Rounds | None]:
    """How far a run between sites is; None, which costs nothing, where it is not to be shown.

    >>> with rounds_progress(5, shown=False) as show:
    ...     print(show)
    None
    """
    if not shown or not _visible():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    usual, words = Progress.get_default_columns()[:3], TextColumn("{task.fields[words]}")
    columns = *usual, TimeElapsedColumn(), words
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as display:
        task = display.add_task("rounds", total=total, words="")

        def show(number: int, words: str) -> None:
            display.update(task, completed=max(number, 0), words=words)

        yield show


def awaited_words(names: Sequence[str], seconds: float) -> str:
    """Who is awaited, and for how long.

    >>> awaited_words(["lab", "ward"], 12.3)
    'lab, ward awaited for 12 s'
    """
    return f"{', '.join(names)} awaited for {seconds:.0f} s" if names else ""
