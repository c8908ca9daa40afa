"""What Python reads when it starts under ``dpsvm run``, in the script's process and its children.

``sklearn.svm`` gets dpsvm's classes once it is imported; until then nothing else is. This folder
leaves ``sys.path``, and a ``sitecustomize`` that it hid is read after all.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing takes longer to import than all the rest
if TYPE_CHECKING:
    from typing import Any


class Watch:
    """A finder that finds nothing of its own and waits for ``sklearn.svm``."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Have the classes put in as soon as the module is loaded.

        Python holds its import lock meanwhile: nothing may be imported here.
        """
        if name != "sklearn.svm":
            return None
        sys.meta_path.remove(self)
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            _after_loading(spec.loader)
        return spec


def _after_loading(loader: Any) -> None:
    load = loader.exec_module

    def load_and_patch(module: Any) -> None:
        load(module)
        del loader.exec_module
        _patch()

    loader.exec_module = load_and_patch


def _patch() -> None:
    try:
        from dpsvm.patching import patch_sklearn
    except ImportError as error:  # a child may be another Python than the one dpsvm is built for
        print(f"dpsvm run: warning: not in {sys.executable}: {error}", file=sys.stderr)
    else:
        patch_sklearn()


def _read_hidden() -> None:
    here = os.path.normcase(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if os.path.normcase(entry) != here]
    this = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", this)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, Watch())
    _read_hidden()
