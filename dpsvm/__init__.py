"""Support vector machines with an exact, fast core and pluggable working-set selection.

>>> from dpsvm import SVC
>>> SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"]).predict([[2.0]])
array(['yes'], dtype='<U3')
"""

from __future__ import annotations

from dpsvm import _built as _built
from dpsvm._lazy import TYPE_CHECKING, lazily
from dpsvm._version import __version__

if TYPE_CHECKING:
    from dpsvm import admm as admm
    from dpsvm import comparison as comparison
    from dpsvm import data as data
    from dpsvm import federation as federation
    from dpsvm import frank_wolfe as frank_wolfe
    from dpsvm import losses as losses
    from dpsvm import privacy as privacy
    from dpsvm import scaling as scaling
    from dpsvm import svm as svm
    from dpsvm import warnings as warnings
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

__getattr__, __dir__ = lazily(
    __name__,
    {
        "dpsvm.comparison": ("Comparison", "compare"),
        "dpsvm.data": ("LibsvmFormatError", "dump_libsvm", "load_libsvm"),
        "dpsvm.patching": ("patch_sklearn", "patched_sklearn", "unpatch_sklearn"),
        "dpsvm.svm": ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"),
        "dpsvm.svm.interchange": ("from_sklearn",),
        "dpsvm.svm.model": ("Model", "from_estimator"),
        "dpsvm.warnings": ("PrivacyLeakWarning",),
    },
    modules=(
        *("admm", "comparison", "data", "federation", "frank_wolfe", "losses"),
        *("privacy", "scaling", "svm", "warnings"),
    ),
)
