"""Every fenced block of every README runs as it stands, in its order, from an empty folder.

A block of TOML is a file, named by its first line. The block that installs dpsvm is not run here,
but by those who try the first screen: .ci/run runs its second line.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dpsvm

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "dpsvm").glob("*/README.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
INSTALLATION = "python3 -m venv"
SECONDS = 900  # a block gets no more, on however busy a machine
PROGRAMS = {
    "dpsvm": "from dpsvm.cli import main; sys.exit(main())",
    **{
        f"dpsvm-{name}": f"from dpsvm.cli.programs import {name}; sys.exit({name}())"
        for name in ("train", "predict", "scale")
    },
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where python is this Python, and dpsvm and its programs those of this tree."""
    folder = tmp_path_factory.mktemp("bin")
    for name, code in PROGRAMS.items():
        program = folder / name
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(0o755)
    tree = Path(dpsvm.__path__[0]).parent
    inherited = {name: value for name, value in os.environ.items() if name != "DPSVM_DATA"}
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return inherited | {"PATH": path, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg"}


@pytest.mark.skipif(os.name != "posix", reason="the blocks are for a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT).parent))
def test_the_blocks_run(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    if "federation align" in page.read_text() and find_spec("private_set_intersection") is None:
        pytest.skip("openmined-psi is not installed")
    for number, (language, text) in enumerate(blocks(page), start=1):
        where = f"block {number} of {page.relative_to(ROOT)}"
        if language == "toml":
            name = re.match(r"# (\S+\.toml)\n", text)
            assert name, f"{where} does not begin with its file's name"
            (tmp_path / name[1]).write_text(text)
            continue
        assert language in ("sh", "python"), f"{where} is of no language that runs"
        if INSTALLATION in text or ("nvflare start" in text and find_spec("nvflare") is None):
            continue
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command if language == "sh" else [sys.executable, "-c", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{where}:\n{text}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "bench" / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            name, _, anchor = link.partition("#")
            target = page if not name else (page.parent / name).resolve()
            assert target.exists(), f"{page.relative_to(ROOT)}: {link}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
                anchors = {
                    re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings
                }
                assert anchor in anchors, f"{page.relative_to(ROOT)}: {link}"


def test_only_the_first_screen_installs() -> None:
    installing = [page for page in PAGES for _, text in blocks(page) if INSTALLATION in text]
    assert installing == [ROOT / "README.md"]
    language, text = blocks(ROOT / "README.md")[0]
    assert language == "sh"
    assert INSTALLATION in text
