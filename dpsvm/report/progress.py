"""A bar on standard error while runs are made, and silence without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsvm.progress import visible


@contextmanager
def runs_progress(
    description: str, total: int | None, shown: bool = True
) -> Iterator[Callable[[], None]]:
    """A function to call after each run.

    total : of the runs; None where it is not known beforehand

    >>> with runs_progress("heart", 2, shown=False) as tick:
    ...     tick()
    """
    if not shown or not visible():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, redirect_stdout=False) as display:
        task = display.add_task(description, total=total)
        yield lambda: display.advance(task)
