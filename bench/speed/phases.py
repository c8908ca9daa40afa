"""Where a sample of perf belongs: each phase of a fit and the symbols that make it up."""

from __future__ import annotations

import re
from pathlib import PurePath

DOTS = "dot products"
KERNEL = "kernel function"
SCANS = "scans and updates"
CACHE = "cache and shrinking"
WAITING = "waiting for the other threads"
COPYING = "copying the rows in"
SYSTEM = "page faults and system"
PYTHON = "Python"
OTHER = "other"

# In this order: a lambda that computes kernel values names the thread pool that runs it.
_CORE = (
    (DOTS, r"::(dots|sparse|bits)(_f(32|64)|<|$)|Samples<\w+>::(dots|expand|pack)"),
    (
        KERNEL,
        r"rbf_(f32|f64|rounded)|apply_kernel|Kernel<.*>::(block|columns|some_rows)|tanh|power",
    ),
    (WAITING, r"ThreadPool::"),
    (COPYING, r"make_samples|make_kernel|::copy<|ColumnMap|DotKernel"),
    (CACHE, r"RowCache|Slabs|SingleQ|DoubledQ|CachedKernel|[Ss]hrink|::swap"),
    (
        SCANS,
        r"argm(ax|in)|beyond|::update|accumulate|second_order|::select|[Ss]olve|Forecast|Scans",
    ),
)
_PYTHON = re.compile(r"python|numpy|scipy|sklearn|site-packages")


def phase_of(library: str, symbol: str) -> str:
    """The phase of a symbol of a shared library, as perf names them.

    >>> phase_of("/x/dpsvm/_core.so", "dpsvm::avx2::(anonymous namespace)::bits_f32")
    'dot products'
    >>> phase_of("[kernel.kallsyms]", "clear_page_erms")
    'page faults and system'
    """
    if library.startswith("["):
        return SYSTEM
    if PurePath(library).name.startswith("_core."):
        return next((phase for phase, names in _CORE if re.search(names, symbol)), OTHER)
    return PYTHON if _PYTHON.search(library) else OTHER


def short(symbol: str, most: int = 60) -> str:
    """A symbol without its namespaces and arguments, as far as a table has room.

    >>> short("dpsvm::avx2::(anonymous namespace)::bits_f32")
    'avx2::bits_f32'
    """
    name = symbol.replace("(anonymous namespace)::", "").replace("dpsvm::", "")
    return name if len(name) <= most else f"{name[: most - 3]}..."
