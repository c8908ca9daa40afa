"""Seeded mutations of LIBSVM data and model texts.

Input k of a seed is the same on every machine, so a failure is named by two numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

DATA = (
    b"+1 1:0.5 3:-1.25 7:1e-3\n-1 2:1 4:0.25\n+1\n-1 1:-0.0 2:3 # a comment\n",
    b"1 qid:1 1:2 2:3\r\n2 qid:1 1:4\r\n3 qid:2 5:6\r\n",
    b"0.25 1:0.708333 2:1 3:1 4:-0.320755\n-17.5 1:0.583333 2:-1 3:0.333333",
)
KERNELS = (b"1 0:1 1:4 2:6\n-1 0:2 1:6 2:18\n", b"-1 0:3 1:0.5 2:-1e-3 3:2\r\n1 0:1\r\n")

_BINARY = (
    b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 3\nrho 0.25\nlabel 1 -1\n"
)
_POLYNOMIAL = (
    b"svm_type nu_svc\nkernel_type polynomial\ndegree 3\ngamma 0.1\ncoef0 1\nnr_class 3\n"
    b"total_sv 3\nrho 0.1 0.2 0.3\nlabel 1 2 3\nnr_sv 1 1 1\nSV\n"
)
_SIGMOID = (
    b"svm_type epsilon_svr\nkernel_type sigmoid\ngamma 0.1\ncoef0 0\nnr_class 2\ntotal_sv 2\n"
)
MODELS = (
    _BINARY + b"nr_sv 1 2\nSV\n1 1:0.5 2:1\n-0.25 1:-1 \n-0.75 3:0.125\n",
    _BINARY + b"probA -1.5\nprobB 0.1\nnr_sv 2 1\nSV\n0.5 1:1\n0.5\n-1 2:2\n",
    _POLYNOMIAL + b"1 0.5 1:1\n-1 0.25 2:1\n-0.5 -0.25 3:1\n",
    b"svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nSV\n1 1:1\n1 2:1\n",
    _SIGMOID + b"rho -1\nprobA 0.5\nSV\n1 1:0.5\n-1 2:0.5\n",
    b"svm_type nu_svr\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0\nSV\n1 0:1\n-1 0:2\n",
)

TOKENS = (
    b"nan", b"-inf", b"1e999", b"1e-999", b"-1", b"0", b"0:1", b"1:", b":1", b"::", b":",
    b"1:2:3", b"2147483647:1", b"2147483648:1", b"99999999999999999999", b"-2147483649",
    b"4294967297", b"0x1p3", b"+", b"-", b".", b"e5", b"1e", b"#", b"qid:7", b"qid:", b"\x00",
    b"\xff", b"\xc2\xa0", b"\t", b"\v", b"\r", b"\n", b"\r\n", b"\n\n", b" ", b"SV\n",
    b"nr_sv 1 1\n", b"nr_class 1000000000\n", b"rho 0\n", b"total_sv -1\n", b"label 1 1\n",
    b"nr_class 2\n", b"svm_type c_svc\n", b"probA 1\n", b"gamma nan\n", b"0" * 400, b"9" * 400,
    b"1:1 " * 300,
)  # fmt: skip

Step = Callable[[random.Random, bytes], bytes]


def _span(rng: random.Random, text: bytes) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 1, 2, 5, 20)))


def _overwrite_byte(rng: random.Random, text: bytes) -> bytes:
    start, _ = _span(rng, text)
    return text[:start] + bytes([rng.randrange(256)]) + text[start + 1 :]


def _flip_bit(rng: random.Random, text: bytes) -> bytes:
    if not text:
        return text
    where = rng.randrange(len(text))
    return text[:where] + bytes([text[where] ^ 1 << rng.randrange(8)]) + text[where + 1 :]


def _change_digit(rng: random.Random, text: bytes) -> bytes:
    digits = [where for where, byte in enumerate(text) if byte in b"0123456789"]
    if not digits:
        return text
    where = rng.choice(digits)
    return text[:where] + b"%d" % rng.randrange(10) + text[where + 1 :]


def _remove(rng: random.Random, text: bytes) -> bytes:
    start, end = _span(rng, text)
    return text[:start] + text[end:]


def _repeat(rng: random.Random, text: bytes) -> bytes:
    start, end = _span(rng, text)
    return text[:end] + text[start:end] * rng.choice((1, 2, 50)) + text[end:]


def _insert_token(rng: random.Random, text: bytes) -> bytes:
    start, _ = _span(rng, text)
    return text[:start] + rng.choice(TOKENS) + text[start:]


def _replace_word(rng: random.Random, text: bytes) -> bytes:
    words = text.split(b" ")
    words[rng.randrange(len(words))] = rng.choice(TOKENS)
    return b" ".join(words)


def _truncate(rng: random.Random, text: bytes) -> bytes:
    return text[: rng.randrange(len(text) + 1)]


def _swap_lines(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _drop_line(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


STEPS: tuple[Step, ...] = (
    _overwrite_byte,
    _flip_bit,
    _change_digit,
    _remove,
    _repeat,
    _insert_token,
    _replace_word,
    _truncate,
    _swap_lines,
    _drop_line,
)


def mutated(texts: tuple[bytes, ...], seed: int, k: int) -> bytes:
    """Input k of a seed: one text after one to four mutations.

    >>> mutated(DATA, 1, 0) == mutated(DATA, 1, 0) != mutated(DATA, 1, 1)
    True
    """
    rng = random.Random(f"{seed}/{k}")
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = rng.choice(STEPS)(rng, text)
    return text
