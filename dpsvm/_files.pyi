from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Doubles: TypeAlias = npt.NDArray[np.float64]
_Rows: TypeAlias = tuple[_Doubles, _Doubles, npt.NDArray[np.int32], npt.NDArray[np.int64]]

class RowReader:
    path: str
    def __init__(
        self,
        path: str,
        *,
        leading: int = 1,
        leading_name: str = "label",
        first_line: int = 1,
        max_rows: int | None = None,
        max_index: int | None = None,
        precomputed: bool = False,
    ) -> None: ...
    def read(self, chunks: Iterable[bytes]) -> _Rows: ...
    def line_of(self, row: int) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def qid_tokens(self) -> int: ...

def parse_rows(
    chunks: Iterable[bytes],
    *,
    path: str,
    leading: int = 1,
    leading_name: str = "label",
    first_line: int = 1,
    max_rows: int | None = None,
    max_index: int | None = None,
    precomputed: bool = False,
) -> _Rows: ...
def format_rows(
    leading: npt.ArrayLike,
    data: npt.ArrayLike,
    indices: npt.ArrayLike,
    indptr: npt.ArrayLike,
    *,
    digits: int | None = None,
    leading_digits: int | None = None,
    first_index: int = 1,
) -> bytes: ...
