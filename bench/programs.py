"""The programs that come with dpsvm, as an installer writes them."""

from __future__ import annotations

import sys
from pathlib import Path

ENTRIES = {
    "dpsvm": ("dpsvm.cli", "main"),
    "dpsvm-train": ("dpsvm.cli.programs", "train"),
    "dpsvm-predict": ("dpsvm.cli.programs", "predict"),
    "dpsvm-scale": ("dpsvm.cli.programs", "scale"),
}


def programs(folder: Path) -> dict[str, Path]:
    """Those beside this Python where dpsvm is installed, otherwise the same ones in a folder.

    The latter need the environment that ``common.child_environment`` gives.
    """
    installed = {name: Path(sys.executable).with_name(name) for name in ENTRIES}
    if all(path.is_file() for path in installed.values()):
        return installed
    written = {name: folder / name for name in ENTRIES}
    for name, (module, function) in ENTRIES.items():
        lines = [
            f"#!{sys.executable}",
            "import sys",
            f"from {module} import {function}",
            "if __name__ == '__main__':",
            f"    sys.exit({function}())",
        ]
        written[name].write_text("\n".join(lines) + "\n")
        written[name].chmod(0o755)
    return written
