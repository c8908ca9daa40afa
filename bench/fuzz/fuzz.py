"""Mutated files against both readers, under AddressSanitizer and UBSan.

    python bench/fuzz/fuzz.py --count 100000

1. The C++ row reader: tests/cpp/test_reader.cpp, built with -fsanitize=address,undefined.
2. The data and model readers as Python users call them: the extension modules are built with
   -fsanitize=address in a temporary folder and run there; no single allocation may pass 256 MB.
3. The tests of malformed files and tampered arrays, on that same build.

No input may crash, hang or raise anything but ValueError. Exit code 1 if one does.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import ROOT, Absent, Table, arguments, note, require_program, run, write_results

COUNT = 100_000
CPP_SECONDS = 1800
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
CPP_FLAGS = f"-std=c++17 -O1 -g -fno-omit-frame-pointer {SANITIZE}"
EXTENSION_FLAGS = "-fsanitize=address -fno-omit-frame-pointer -g1 -O1"
ASAN_OPTIONS = "detect_leaks=0:max_allocation_size_mb=256:allocator_may_return_null=1"
CORPORA_TESTS = tuple(
    f"tests/test_{name}.py" for name in ("data", "model_file", "scaling", "bad_input")
)


def failure(done: subprocess.CompletedProcess[str]) -> str | None:
    """Why a child failed, None if it did not: its signal, or the last telling line."""
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    telling = [line for line in lines if "ERROR:" in line or "Error:" in line] or lines[-1:]
    return f"exit {done.returncode}: {' | '.join(telling[:2])}"


def fuzz_cpp(folder: Path, count: int) -> str | None:
    """Part one; None when every input ended well."""
    source = ROOT / "tests" / "cpp" / "test_reader.cpp"
    if not source.is_file():
        raise Absent("tests/cpp/test_reader.cpp is absent")
    program = folder / "test_reader"
    sources = [str(source), str(ROOT / "csrc" / "reader.cpp"), str(ROOT / "csrc" / "writer.cpp")]
    command = [require_program("g++"), *shlex.split(CPP_FLAGS), f"-I{ROOT / 'csrc'}", *sources]
    subprocess.run([*command, "-o", str(program)], check=True)
    done = subprocess.run(
        [program, str(count)], capture_output=True, text=True, timeout=CPP_SECONDS, check=False
    )
    note(done.stdout.strip())
    return failure(done)


def compiler_file(name: str) -> str:
    """The path of a library that comes with the compiler."""
    command = [require_program("gcc"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def build_with_asan(folder: Path) -> dict[str, str]:
    """Build the package into a folder; the environment in which Python uses that build."""
    sanitized = {
        "CFLAGS": EXTENSION_FLAGS,
        "CXXFLAGS": EXTENSION_FLAGS,
        "LDFLAGS": "-fsanitize=address",
    }
    tree = folder / "tree"
    tree.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, tree)
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("csrc", "dpsvm"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignore)
    built = folder / "built"
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-lib", str(built)],
        cwd=tree,
        env=os.environ | sanitized,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    # libstdc++ too: Python does not link it, and ASan must find __cxa_throw when it starts.
    runtimes = [compiler_file("libasan.so"), compiler_file("libstdc++.so")]
    return os.environ | {
        "PYTHONPATH": str(built),
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": ASAN_OPTIONS,
    }


def fuzz_python(environment: dict[str, str], folder: Path, count: int, seed: int) -> str | None:
    """Part two; None when every input ended well."""
    inputs = folder / "inputs"
    inputs.mkdir()
    script = Path(__file__).with_name("fuzz_readers.py")
    command = [sys.executable, str(script), "--folder", str(inputs)]
    done = subprocess.run(
        [*command, "--count", str(count), "--seed", str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    why = failure(done)
    if why is not None:
        left = [f"{path.name}: {path.read_bytes()[:300]!r}" for path in inputs.iterdir()]
        return "\n".join([why, *left])
    counts = json.loads(done.stdout.splitlines()[-1])
    note(", ".join(f"{kind} {number}" for kind, number in sorted(counts.items())))
    return None


def corpora(environment: dict[str, str], folder: Path) -> str | None:
    """Part three: the project's own tests of bad input."""
    tests = [str(ROOT / name) for name in CORPORA_TESTS if (ROOT / name).is_file()]
    if not tests:
        raise Absent(f"none of {', '.join(CORPORA_TESTS)} is here")
    words = ["-P", "-m", "pytest", "-q", "-k", "malformed or altered", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words, *tests],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    note(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-300:])
    return failure(done)


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, help=f"inputs of each part (default {COUNT})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpp-only", action="store_true", help="part one only")
    options = parser.parse_args(argv)
    count = options.count or (2000 if options.quick else COUNT)
    table = Table("Fuzz", ("part", "inputs", "outcome"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note("building and running the C++ reader under ASan and UBSan")
        table.rows.append(["C++ row reader", count, fuzz_cpp(folder, count) or "clean"])
        if not options.cpp_only:
            note("building the extension modules under ASan")
            environment = build_with_asan(folder)
            why = fuzz_python(environment, folder, count, options.seed)
            table.rows.append(["Python data and model readers", count, why or "clean"])
            why = corpora(environment, folder)
            table.rows.append(["malformed corpora", None, why or "clean"])
    print(table.text(), end="\n\n")
    clean = all(row[-1] == "clean" for row in table.rows)
    verdicts = [f"no crash, no hang, no uncaught exception: {'yes' if clean else 'NO'}"]
    print(verdicts[0])
    if not options.quick and not options.cpp_only:
        config = {"count": count, "seed": options.seed}
        write_results(options.results, "fuzz", [table], config=config, verdicts=verdicts)
    return 0 if clean else 1


if __name__ == "__main__":
    run(main)
