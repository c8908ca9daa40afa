"""A matplotlib backend that draws to files: on exit, every open figure becomes a picture.

``MPLBACKEND=module://figure_keeper`` chooses it and ``FIGURE_FOLDER`` says where pictures go.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas"]


def _keep() -> None:
    for manager in Gcf.get_all_fig_managers():
        path = Path(os.environ["FIGURE_FOLDER"], f"{manager.num}.png")
        manager.canvas.figure.savefig(path, dpi=50)


atexit.register(_keep)
