"""Support vector machines with an exact, fast core and pluggable working-set selection.

>>> from dpsvm import SVC
>>> SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"]).predict([[2.0]])
array(['yes'], dtype='<U3')
"""

from __future__ import annotations

from dpsvm.data import dump_libsvm, load_libsvm
from dpsvm.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.warnings import PrivacyLeakWarning

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "PrivacyLeakWarning",
    "dump_libsvm",
    "load_libsvm",
]
