"""Progress on a terminal, and silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
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
