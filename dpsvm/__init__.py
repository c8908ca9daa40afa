"""Support vector machines with an exact, fast core and pluggable working-set selection.

>>> from dpsvm import SVC
>>> SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"]).predict([[2.0]])
array(['yes'], dtype='<U3')
"""

from __future__ import annotations

from dpsvm import _built as _built
from dpsvm._version import __version__
from dpsvm.comparison import Comparison, compare
from dpsvm.data import LibsvmFormatError, dump_libsvm, load_libsvm
from dpsvm.patching import patch_sklearn, patched_sklearn, unpatch_sklearn
from dpsvm.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.svm.interchange import from_sklearn
from dpsvm.svm.model import Model, from_estimator
from dpsvm.warnings import PrivacyLeakWarning

__all__ = [
    "SVC",
    "SVR",
    "Comparison",
    "LibsvmFormatError",
    "Model",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PrivacyLeakWarning",
    "__version__",
    "compare",
    "dump_libsvm",
    "from_estimator",
    "from_sklearn",
    "load_libsvm",
    "patch_sklearn",
    "patched_sklearn",
    "unpatch_sklearn",
]
