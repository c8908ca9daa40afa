"""Support vector machines: estimators, parameters and models."""

from __future__ import annotations

from dpsvm.svm.classification import SVC, NuSVC
from dpsvm.svm.one_class import OneClassSVM
from dpsvm.svm.regression import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
