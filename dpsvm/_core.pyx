"""Binding of the C++ solver: converts arrays, releases the GIL, polls signals; decides nothing."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.map cimport map
from libcpp.string cimport string
from libcpp.vector cimport vector

import numpy as np

from dpsvm._result import TRACE, Report, Solution


cdef extern from "<optional>" namespace "std" nogil:
    cdef cppclass OptionalSeed "std::optional<std::uint64_t>":
        OptionalSeed& operator=(uint64_t)


cdef extern from "types.hpp" namespace "dpsvm" nogil:
    ctypedef ptrdiff_t Index
    cdef enum class StopReason:
        stationary
        exhausted
        stalled
        max_iter
        time_limit
        cancelled


cdef extern from "matrix.hpp" namespace "dpsvm" nogil:
    cdef cppclass DenseView[T]:
        const T* values
        Index rows, cols, stride

    cdef cppclass CsrView[T, I]:
        const T* values
        const I* columns
        const I* offsets
        Index rows, cols

    cdef cppclass Matrix:
        Matrix()
        Matrix& operator=(const DenseView[float]&)
        Matrix& operator=(const DenseView[double]&)
        Matrix& operator=(const CsrView[float, int32_t]&)
        Matrix& operator=(const CsrView[float, int64_t]&)
        Matrix& operator=(const CsrView[double, int32_t]&)
        Matrix& operator=(const CsrView[double, int64_t]&)

    vector[Index] consecutive(Index, Index) except +


cdef extern from "simd.hpp" namespace "dpsvm" nogil:
    cdef cppclass Simd:
        const char* name
    const Simd& simd() except +


cdef extern from "kernel.hpp" namespace "dpsvm" nogil:
    cdef enum class KernelType:
        linear
        poly
        rbf
        sigmoid
        precomputed

    cdef cppclass KernelSpec:
        KernelType type
        double gamma, coef0
        int degree


cdef extern from "watch.hpp" namespace "dpsvm" nogil:
    cdef cppclass Progress:
        Index problem, problems
        int64_t iteration
        double gap
        Index active
        string marks

    cdef cppclass Watch:
        Watch(cbool (*)(void*, const Progress&) noexcept nogil, void*, double)


cdef extern from "problem.hpp" namespace "dpsvm" nogil:
    cdef enum class Machine:
        c_svc
        nu_svc
        one_class
        epsilon_svr
        nu_svr

    cdef cppclass MachineSpec:
        Machine machine
        double C, nu, epsilon


cdef extern from "selector.hpp" namespace "dpsvm" nogil:
    cdef cppclass Number:
        const char* name
        const char* label
        const char* meaning
        double initial, low, high

    cdef cppclass Rule:
        const char* name
        const char* label
        int year
        const Number** numbers
        cbool random, once_only, as_libsvm, decomposition
        const Number* budget
        const char* caveat

    cdef cppclass SelectorSpec:
        string name
        map[string, double] numbers
        OptionalSeed seed

    vector[const Rule*] c_rules "dpsvm::rules"() except +


cdef extern from "train.hpp" namespace "dpsvm" nogil:
    cdef enum class Algorithm:
        smo
        decomposition

    cdef cppclass SolverOptions:
        double tol
        cbool shrinking
        int64_t max_iter, trace_every

    cdef cppclass TracePoint:
        int64_t iteration
        double gap, objective
        Index active

    cdef cppclass SolverResult:
        double rho, r, objective, gap, range
        int64_t iterations, draws
        StopReason stop_reason
        string marks

    cdef cppclass QStatistics:
        int64_t hits, misses, evaluations
        double seconds

    cdef cppclass CReport "dpsvm::Report":
        SolverResult result
        Index n_sv, n_bsv
        double nu, seconds
        QStatistics kernel
        vector[TracePoint] trace

    cdef cppclass Model:
        vector[int32_t] support, n_support
        vector[double] dual_coef, rho
        vector[CReport] reports

    cdef cppclass TrainInput:
        Matrix x
        vector[Index] rows
        const double* y
        Index classes
        const double* weight
        const double* class_weight
        const double* start

    cdef cppclass TrainOptions:
        MachineSpec machine
        KernelSpec kernel
        Algorithm algorithm
        SelectorSpec selector
        SolverOptions solver
        size_t cache_bytes
        int threads

    Model c_train "dpsvm::train"(const TrainInput&, const TrainOptions&, Watch&) except +


cdef extern from "predict.hpp" namespace "dpsvm" nogil:
    cdef cppclass PredictInput:
        Matrix x, support_vectors
        const int32_t* support
        Index n_sv
        const double* dual_coef
        const double* rho
        const double* range
        const int32_t* n_support
        Machine machine
        Index classes
        KernelSpec kernel
        int threads

    cbool c_decision_values "dpsvm::decision_values"(const PredictInput&, double*, Watch&) except +


cdef class _Monitor:
    """Stands between the solver and Python: signals first, then the caller's function."""
    cdef object function
    cdef object error

    def __cinit__(self, function):
        self.function = function
        self.error = None


cdef cbool _poll(void* context, const Progress& progress) noexcept with gil:
    monitor = <_Monitor> context
    try:
        PyErr_CheckSignals()
        return monitor.function is not None and bool(monitor.function({
            "problem": progress.problem,
            "problems": progress.problems,
            "iteration": progress.iteration,
            "gap": progress.gap,
            "active": progress.active,
            "marks": progress.marks.decode(),
        }))
    except BaseException as error:
        monitor.error = error
        return True


cdef int _view_dense(Matrix& matrix, X) except -1:
    cdef const double[:, :] doubles
    cdef const float[:, :] floats
    cdef DenseView[double] double_view
    cdef DenseView[float] float_view
    if X.size and X.shape[1] > 1 and X.strides[1] != X.itemsize:
        raise ValueError("the entries of a row of X must lie side by side")
    if X.dtype == np.float32:
        floats = X
        float_view.values = &floats[0, 0] if X.size else NULL
        float_view.rows, float_view.cols = floats.shape[0], floats.shape[1]
        float_view.stride = floats.strides[0] // <Index> sizeof(float)
        matrix = float_view
    else:
        doubles = X
        double_view.values = &doubles[0, 0] if X.size else NULL
        double_view.rows, double_view.cols = doubles.shape[0], doubles.shape[1]
        double_view.stride = doubles.strides[0] // <Index> sizeof(double)
        matrix = double_view
    return 0


ctypedef fused Value:
    float
    double

ctypedef fused Column:
    int32_t
    int64_t


cdef int _view_csr(Matrix& matrix, const Value[::1] values, const Column[::1] columns, const Column[::1] offsets,
                   Index rows, Index cols) except -1:
    cdef CsrView[Value, Column] view
    view.values = &values[0] if values.shape[0] else NULL
    view.columns = &columns[0] if columns.shape[0] else NULL
    view.offsets = &offsets[0]
    view.rows = rows
    view.cols = cols
    matrix = view
    return 0


cdef int _view(Matrix& matrix, X) except -1:
    """Points `matrix` at X, which must outlive it."""
    if isinstance(X, np.ndarray):
        return _view_dense(matrix, X)
    if X.shape[1] > 2**31 - 1:
        raise ValueError(f"X has {X.shape[1]} features; at most 2147483647 are supported")
    if X.dtype == np.float32:
        if X.indices.dtype == np.int32:
            return _view_csr[float, int32_t](matrix, X.data, X.indices, X.indptr, X.shape[0], X.shape[1])
        return _view_csr[float, int64_t](matrix, X.data, X.indices, X.indptr, X.shape[0], X.shape[1])
    if X.indices.dtype == np.int32:
        return _view_csr[double, int32_t](matrix, X.data, X.indices, X.indptr, X.shape[0], X.shape[1])
    return _view_csr[double, int64_t](matrix, X.data, X.indices, X.indptr, X.shape[0], X.shape[1])


cdef const double* _doubles(array, Index length, name) except? NULL:
    """The array's first element; the caller keeps the array alive. None gives a null pointer."""
    cdef const double[::1] view
    if array is None:
        return NULL
    if array.ndim != 1 or array.shape[0] != length:
        raise ValueError(f"{name} has shape {array.shape}, expected ({length},)")
    view = array
    return &view[0] if length else NULL


cdef dict _MACHINES = {
    "c-svc": <int> Machine.c_svc, "nu-svc": <int> Machine.nu_svc, "one-class": <int> Machine.one_class,
    "epsilon-svr": <int> Machine.epsilon_svr, "nu-svr": <int> Machine.nu_svr,
}
cdef dict _KERNELS = {
    "linear": <int> KernelType.linear, "poly": <int> KernelType.poly, "rbf": <int> KernelType.rbf,
    "sigmoid": <int> KernelType.sigmoid, "precomputed": <int> KernelType.precomputed,
}
cdef dict _ALGORITHMS = {"smo": <int> Algorithm.smo, "decomposition": <int> Algorithm.decomposition}
cdef dict _STOP_REASONS = {
    <int> StopReason.stationary: "stationary", <int> StopReason.exhausted: "exhausted",
    <int> StopReason.stalled: "stalled", <int> StopReason.max_iter: "max_iter", <int> StopReason.time_limit: "time_limit",
    <int> StopReason.cancelled: "callback",
}


def _named(table, name, what):
    if name not in table:
        raise ValueError(f"unknown {what} {name!r} ({', '.join(table)})")
    return table[name]


cdef KernelSpec _kernel_spec(kernel, double gamma, double coef0, int degree) except *:
    cdef KernelSpec spec
    spec.type = <KernelType> <int> _named(_KERNELS, kernel, "kernel")
    spec.gamma, spec.coef0, spec.degree = gamma, coef0, degree
    return spec


cdef _array(vector[double]& values):
    return np.asarray(<double[:values.size()]> values.data()).copy() if values.size() else np.empty(0)


cdef _int_array(vector[int32_t]& values):
    if not values.size():
        return np.empty(0, dtype=np.int32)
    return np.asarray(<int32_t[:values.size()]> values.data()).copy()


cdef _trace(vector[TracePoint]& points):
    return np.array([(p.iteration, p.gap, p.objective, p.active) for p in points], dtype=TRACE)


cdef _report(CReport& report):
    return Report(
        iterations=report.result.iterations,
        objective=report.result.objective,
        rho=report.result.rho,
        gap=report.result.gap,
        decision_range=report.result.range,
        stop_reason=_STOP_REASONS[<int> report.result.stop_reason],
        n_sv=report.n_sv,
        n_bsv=report.n_bsv,
        seconds=report.seconds,
        kernel_rows=report.kernel.misses,
        kernel_evaluations=report.kernel.evaluations,
        kernel_seconds=report.kernel.seconds,
        cache_hits=report.kernel.hits,
        nu=report.nu,
        r=report.result.r,
        n_selections=report.result.draws,
        marks=report.result.marks.decode(),
        trace=_trace(report.trace),
    )


cdef _number(const Number* number):
    return {
        "name": number.name.decode(),
        "label": number.label.decode(),
        "meaning": number.meaning.decode(),
        "default": number.initial,
        "low": number.low,
        "high": number.high,
    }


cdef _selector(const Rule* rule):
    numbers = []
    while rule.numbers[len(numbers)] != NULL:
        numbers.append(_number(rule.numbers[len(numbers)]))
    return {
        "name": rule.name.decode(),
        "label": rule.label.decode(),
        "year": rule.year,
        "numbers": numbers,
        "random": rule.random,
        "once_only": rule.once_only,
        "as_libsvm": rule.as_libsvm,
        "decomposition": rule.decomposition,
        "budget": None if rule.budget == NULL else rule.budget.name.decode(),
        "caveat": rule.caveat.decode(),
    }


def selectors():
    """What is registered of every selector; see the stub file."""
    return [_selector(rule) for rule in c_rules()]


def train(X, y, *, machine, kernel, double gamma=1.0, double coef0=0.0, int degree=3, double C=1.0, double nu=0.5,
          double epsilon=0.1, double tol=1e-3, size_t cache_bytes=200 << 20, bint shrinking=True, int64_t max_iter=-1,
          double time_limit=float("inf"), solver="smo", selector="wss2", seed=None, int threads=1, rows=None,
          sample_weight=None, class_weight=None, alpha=None, int64_t trace_every=0, monitor=None, **numbers):
    """Fits one machine; see the stub file for the arguments."""
    cdef TrainInput data
    cdef TrainOptions options
    cdef Model model
    cdef _Monitor hook = _Monitor(monitor)
    cdef Watch* watch
    cdef const Index[::1] named
    cdef Index n = X.shape[0] if rows is None else len(rows)

    _view(data.x, X)
    if rows is None:
        data.rows = consecutive(0, n)
    elif n:
        named = rows
        data.rows.assign(&named[0], &named[0] + n)
    data.y = _doubles(y, n, "y")
    data.weight = _doubles(sample_weight, n, "sample_weight")
    data.classes = 0
    if machine in ("c-svc", "nu-svc"):
        data.classes = int(np.max(y)) + 1 if n else 0
    elif class_weight is not None:
        raise ValueError("class_weight is for classifiers only")
    data.class_weight = _doubles(class_weight, data.classes, "class_weight")
    if alpha is not None:
        alpha = np.ascontiguousarray(alpha, dtype=np.float64).reshape(-1)
    data.start = _doubles(alpha, max(data.classes - 1, 1) * n, "alpha")
    if data.y == NULL and machine != "one-class" and n:
        raise ValueError(f"machine {machine!r} needs y")

    options.machine.machine = <Machine> <int> _named(_MACHINES, machine, "machine")
    options.machine.C, options.machine.nu, options.machine.epsilon = C, nu, epsilon
    options.kernel = _kernel_spec(kernel, gamma, coef0, degree)
    options.algorithm = <Algorithm> <int> _named(_ALGORITHMS, solver, "solver")
    options.selector.name = selector.encode()
    options.selector.numbers = {name.encode(): float(value) for name, value in numbers.items()}
    if seed is not None:
        options.selector.seed = <uint64_t> seed
    options.solver.tol, options.solver.shrinking, options.solver.max_iter = tol, shrinking, max_iter
    options.solver.trace_every = trace_every
    options.cache_bytes = cache_bytes
    options.threads = threads

    watch = new Watch(_poll, <void*> hook, time_limit)
    try:
        with nogil:
            model = c_train(data, options, watch[0])
    except Exception:
        if hook.error is not None:
            raise hook.error
        raise
    finally:
        del watch
    if hook.error is not None:
        raise hook.error
    return Solution(
        support=_int_array(model.support),
        n_support=_int_array(model.n_support),
        dual_coef=_array(model.dual_coef).reshape(max(data.classes - 1, 1), -1),
        rho=_array(model.rho),
        reports=tuple([_report(report) for report in model.reports]),
    )


def decision_values(X, support_vectors, dual_coef, rho, n_support, *, machine, kernel, double gamma=1.0,
                    double coef0=0.0, int degree=3, support=None, decision_range=None, int threads=1):
    """Decision values of a model, one column for each pair of classes; see the stub file for the arguments."""
    cdef PredictInput data
    cdef _Monitor hook = _Monitor(None)
    cdef Watch* watch
    cdef const double[:, ::1] coefficients = dual_coef
    cdef const int32_t[::1] counts = n_support
    cdef const int32_t[::1] columns
    cdef double[:, ::1] out
    cdef bint classifier = machine in ("c-svc", "nu-svc")
    cdef Index classes = counts.shape[0] if classifier else 0
    cdef Index pairs = classes * (classes - 1) // 2 if classifier else 1
    cdef Index lines = max(classes - 1, 1)
    cdef bint complete

    if coefficients.shape[0] != lines:
        raise ValueError(f"dual_coef has {coefficients.shape[0]} rows, expected {lines}")
    if counts.shape[0] < (2 if classifier else 1) or np.min(n_support) < 0 or np.sum(n_support) != coefficients.shape[1]:
        raise ValueError(f"n_support {list(n_support)} does not add up to the {coefficients.shape[1]} support vectors")
    data.kernel = _kernel_spec(kernel, gamma, coef0, degree)
    _view(data.x, X)
    if kernel == "precomputed":
        columns = support
        if columns.shape[0] != coefficients.shape[1]:
            raise ValueError(f"support has {columns.shape[0]} entries, expected {coefficients.shape[1]}")
        data.support = &columns[0] if columns.shape[0] else NULL
    else:
        _view(data.support_vectors, support_vectors)
    data.n_sv = coefficients.shape[1]
    data.dual_coef = &coefficients[0, 0] if data.n_sv else NULL
    data.rho = _doubles(rho, pairs, "rho")
    data.range = _doubles(decision_range, pairs, "decision_range")
    data.n_support = &counts[0]
    data.machine = <Machine> <int> _named(_MACHINES, machine, "machine")
    data.classes = classes
    data.threads = threads

    values = np.empty((X.shape[0], pairs))
    out = values
    watch = new Watch(_poll, <void*> hook, float("inf"))
    try:
        if values.size:
            with nogil:
                complete = c_decision_values(data, &out[0, 0], watch[0])
    finally:
        del watch
    if hook.error is not None:
        raise hook.error
    return values


def cpu_level():
    """The instruction set chosen at run time: ``portable``, ``avx2``, ``avx512`` or ``neon``.

    >>> cpu_level() in ("portable", "avx2", "avx512", "neon")
    True
    """
    return simd().name.decode()
