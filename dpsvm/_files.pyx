# cython: language_level=3, boundscheck=False, wraparound=False
"""Binding of csrc/reader and csrc/writer: converts arrays, releases the GIL, polls signals."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

import numpy as np

from dpsvm._errors import LibsvmFormatError


cdef extern from "reader.hpp" namespace "dpsvm" nogil:
    ctypedef ptrdiff_t Index

    cppclass ReaderOptions:
        Index leading
        string leading_name
        Index first_line
        Index max_rows
        Index max_index
        bool precomputed

    cppclass SparseRows:
        vector[double] leading
        vector[double] values
        vector[int32_t] columns
        vector[int64_t] offsets
        Index count()

    cppclass Reader:
        Reader(ReaderOptions) except +
        void feed(const char*, size_t) except +
        void finish() except +
        const SparseRows& rows()
        Index line()
        Index line_of(Index) except +
        Index column_count()
        Index qid_tokens()


cdef extern from "writer.hpp" namespace "dpsvm" nogil:
    cppclass WriterOptions:
        Index leading
        int leading_digits
        int value_digits
        Index first_index

    cppclass SparseRowsView:
        const double* leading
        const double* values
        const int64_t* columns
        const int64_t* offsets
        Index rows

    void write_rows(const SparseRowsView&, const WriterOptions&, string&) except +


# Bytes parsed between two looks at pending signals.
cdef size_t PIECE = 1 << 20


cdef class _Array:
    """An array inside a RowReader, lent to numpy without a copy; it keeps the reader alive."""

    cdef RowReader owner
    cdef void* start
    cdef bytes format
    cdef Py_ssize_t length, itemsize

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        buffer.buf = self.start
        buffer.obj = self
        buffer.len = self.length * self.itemsize
        buffer.itemsize = self.itemsize
        buffer.readonly = 0
        buffer.ndim = 1
        buffer.format = self.format
        buffer.shape = &self.length
        buffer.strides = &self.itemsize
        buffer.suboffsets = NULL
        buffer.internal = NULL


cdef object _lend(RowReader owner, const void* start, size_t length, dtype):
    if length == 0:
        return np.empty(0, dtype)
    cdef _Array array = _Array.__new__(_Array)
    array.owner = owner
    array.start = <void*>start
    array.format = np.dtype(dtype).char.encode()
    array.length = length
    array.itemsize = np.dtype(dtype).itemsize
    return np.asarray(array)


cdef class RowReader:
    """Reads LIBSVM text once: ``read`` gives the rows, the rest says where they stood."""

    cdef unique_ptr[Reader] reader
    cdef readonly str path
    cdef Py_ssize_t leading

    def __init__(self, str path, *, Py_ssize_t leading=1, str leading_name="label", Py_ssize_t first_line=1,
                 max_rows=None, max_index=None, bint precomputed=False):
        cdef ReaderOptions options
        options.leading = leading
        options.leading_name = leading_name.encode()
        options.first_line = first_line
        if max_rows is not None:
            options.max_rows = max_rows
        if max_index is not None:
            options.max_index = max_index
        options.precomputed = precomputed
        self.reader.reset(new Reader(options))
        self.path = path
        self.leading = leading

    def read(self, chunks):
        """Return leading (rows, leading), data, indices and indptr of the rows in the chunks of text."""
        for chunk in chunks:
            self._feed(chunk)
        self._finish()
        return self._arrays()

    def _feed(self, const unsigned char[::1] text not None):
        cdef Reader* reader = self.reader.get()
        cdef size_t start = 0, size, end = text.shape[0]
        while start < end:
            size = min(PIECE, end - start)
            try:
                with nogil:
                    reader.feed(<const char*>&text[start], size)
            except ValueError as error:
                raise self._located(error) from None
            start += size
            PyErr_CheckSignals()

    def _finish(self):
        try:
            with nogil:
                self.reader.get().finish()
        except ValueError as error:
            raise self._located(error) from None

    def _located(self, error):
        return LibsvmFormatError(self.path, self.reader.get().line(), str(error))

    def _arrays(self):
        cdef const SparseRows* rows = &self.reader.get().rows()
        leading = _lend(self, rows.leading.data(), rows.leading.size(), np.float64)
        return (
            leading.reshape(rows.count(), self.leading),
            _lend(self, rows.values.data(), rows.values.size(), np.float64),
            _lend(self, rows.columns.data(), rows.columns.size(), np.int32),
            _lend(self, rows.offsets.data(), rows.offsets.size(), np.int64),
        )

    def line_of(self, Py_ssize_t row):
        """The line of the file that holds a row (counted from 0)."""
        return self.reader.get().line_of(row)

    @property
    def n_columns(self):
        return self.reader.get().column_count()

    @property
    def qid_tokens(self):
        """How many qid:N tokens were seen and ignored."""
        return self.reader.get().qid_tokens()


def parse_rows(chunks, *, path, **options):
    """Rows of LIBSVM text as (leading, data, indices, indptr); the options are RowReader's."""
    return RowReader(path, **options).read(chunks)


cdef int _digits(digits) except -1:
    if digits is not None and not 1 <= digits <= 17:
        raise ValueError(f"digits must be None or from 1 to 17, got {digits!r}")
    return 0 if digits is None else digits


def format_rows(leading, data, indices, indptr, *, digits=None, leading_digits=None, Index first_index=1):
    """LIBSVM text of CSR rows; digits are significant digits as in %.6g, None the fewest that read back exactly."""
    cdef const double[:, ::1] lead = np.ascontiguousarray(leading, np.float64)
    cdef const double[::1] values = np.ascontiguousarray(data, np.float64)
    cdef const int64_t[::1] columns = np.ascontiguousarray(indices, np.int64)
    cdef const int64_t[::1] offsets = np.ascontiguousarray(indptr, np.int64)
    if offsets.shape[0] != lead.shape[0] + 1 or columns.shape[0] != values.shape[0]:
        raise ValueError("leading, data, indices and indptr do not describe the same rows")
    if offsets[0] < 0 or offsets[lead.shape[0]] > values.shape[0] or (np.diff(offsets) < 0).any():
        raise ValueError("indptr must ascend from 0 to the number of entries")
    cdef WriterOptions options
    options.leading = lead.shape[1]
    options.leading_digits = _digits(leading_digits)
    options.value_digits = _digits(digits)
    options.first_index = first_index
    cdef SparseRowsView rows
    rows.rows = lead.shape[0]
    rows.offsets = &offsets[0]
    rows.leading = &lead[0, 0] if lead.size else NULL
    rows.values = &values[0] if values.size else NULL
    rows.columns = &columns[0] if columns.size else NULL
    cdef string out
    with nogil:
        write_rows(rows, options, out)
    return <bytes>out
