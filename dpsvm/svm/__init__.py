"""Support vector machines: estimators, parameters and models."""

from __future__ import annotations

from dpsvm._lazy import TYPE_CHECKING, lazily

if TYPE_CHECKING:
    from dpsvm.svm.classification import SVC, NuSVC
    from dpsvm.svm.one_class import OneClassSVM
    from dpsvm.svm.regression import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "dpsvm.svm.classification": ("SVC", "NuSVC"),
        "dpsvm.svm.one_class": ("OneClassSVM",),
        "dpsvm.svm.regression": ("SVR", "NuSVR"),
    },
)
