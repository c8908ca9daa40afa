"""Feed mutated files to dpsvm's two readers, in this process; started by fuzz.py under ASan.

    python bench/fuzz/fuzz_readers.py --count 1000 --seed 1

Every other input is a model file, the rest are data files, plain or with a precomputed kernel;
one in ten is compressed, and then mostly mutated once more. A model that is accepted must also
decide. Every input must be accepted or refused with a ValueError, within the time limit: SIGALRM
ends the process otherwise, and the input is left in the folder given. Prints one JSON object with
the counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.fuzz.mutation import DATA, KERNELS, MODELS, mutated

SECONDS = 10.0  # for one input, under ASan
TEXTS = {"data": DATA, "kernel": KERNELS, "model": MODELS}
ORDER = ("data", "model", "kernel", "model")

# By input number modulo 20.
COMPRESSED: dict[int, tuple[str, Callable[[bytes], bytes]]] = {
    7: (".gz", gzip.compress),
    14: (".xz", lzma.compress),
}


def write_input(folder: Path, seed: int, k: int) -> Path:
    """Input k as a file; which reader it is for and its compression follow from k."""
    kind = ORDER[k % len(ORDER)]
    text = mutated(TEXTS[kind], seed, k)
    suffix = ""
    if k % 20 in COMPRESSED:
        suffix, compress = COMPRESSED[k % 20]
        text = compress(text)
        if k % 3:
            text = mutated((text,), seed, k)
    path = folder / f"{kind}{suffix}"
    path.write_bytes(text)
    return path


def read_data(path: Path, *, precomputed: bool = False) -> None:
    from dpsvm.data import load_libsvm

    X, y = load_libsvm(path, precomputed=precomputed)
    if X.shape[0] != len(y) or not np.isfinite(X.data).all() or not np.isfinite(y).all():
        raise AssertionError("a data file was accepted that holds what it must not")


def read_model(path: Path) -> None:
    from dpsvm import Model

    model = Model.read(path)
    model.predict(np.eye(4) if model.serials is None else np.ones((2, 8)))


def outcome(path: Path) -> str:
    """'accepted' or 'refused'; any other exception is a failure, and passes through."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        if path.stem == "model":
            read_model(path)
        else:
            read_data(path, precomputed=path.stem == "kernel")
    except ValueError:
        return "refused"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return "accepted"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="where the inputs are written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for k in range(options.count):
        path = write_input(options.folder, options.seed, k)
        try:
            counts[f"{path.stem} {outcome(path)}"] += 1
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"input {k} of seed {options.seed} ({path.name}): {told}") from error
        path.unlink()
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
