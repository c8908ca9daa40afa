"""LIBSVM's shared library, asked about a model file in double precision.

svm-predict prints probabilities with six digits, too few to compare to 1e-6.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from bench.common import Absent

Doubles = ctypes.POINTER(ctypes.c_double)


class Node(ctypes.Structure):
    """LIBSVM's svm_node; a row ends with index -1."""

    _fields_ = (("index", ctypes.c_int), ("value", ctypes.c_double))


def _library() -> ctypes.CDLL:
    name = ctypes.util.find_library("svm")
    if name is None:
        raise Absent("LIBSVM's shared library is not installed")
    library = ctypes.CDLL(name)
    library.svm_load_model.restype = ctypes.c_void_p
    library.svm_load_model.argtypes = [ctypes.c_char_p]
    library.svm_get_nr_class.argtypes = [ctypes.c_void_p]
    library.svm_free_and_destroy_model.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    for function in (library.svm_predict_values, library.svm_predict_probability):
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_void_p, ctypes.POINTER(Node), Doubles]
    return library


def _nodes(X: sp.csr_matrix, row: int) -> ctypes.Array[Node]:
    entries = slice(X.indptr[row], X.indptr[row + 1])
    pairs = zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
    nodes = [Node(index + 1, value) for index, value in pairs]
    return (Node * (len(nodes) + 1))(*nodes, Node(-1, 0.0))


def evaluate(path: Path, X: sp.csr_matrix, *, probability: bool) -> np.ndarray:
    """LIBSVM's decision values, one column per pair, or its class probabilities."""
    library = _library()
    model = ctypes.c_void_p(library.svm_load_model(str(path).encode()))
    if not model:
        raise ValueError(f"LIBSVM cannot load {path}")
    classes = library.svm_get_nr_class(model)
    width = classes if probability else classes * (classes - 1) // 2
    function = library.svm_predict_probability if probability else library.svm_predict_values
    values = np.empty((X.shape[0], width))
    for row in range(X.shape[0]):
        function(model, _nodes(X, row), values[row].ctypes.data_as(Doubles))
    library.svm_free_and_destroy_model(ctypes.byref(model))
    return values
