"""How many threads ``n_jobs`` stands for."""

from __future__ import annotations

import os


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads to use.

    ``None`` follows OpenMP: ``OMP_NUM_THREADS`` if set, else every core this process may use. -1
    is every core, -2 all but one, and so on.

    >>> thread_count(3)
    3
    >>> thread_count(0)
    Traceback (most recent call last):
    ...
    ValueError: n_jobs must not be 0
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0")
    if n_jobs is None:
        return _openmp_threads() or _usable_cores()
    if n_jobs < 0:
        return max(1, _usable_cores() + 1 + n_jobs)
    return int(n_jobs)


def _openmp_threads() -> int:
    """Return the outermost level of OMP_NUM_THREADS; 0 if unset or, as in OpenMP, malformed."""
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
