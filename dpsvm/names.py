"""Names that flags, settings and job files may give, for help to tell without numerics imported."""

from __future__ import annotations

LOSSES = ("hinge", "huber", "smooth", "logistic")
"""The convex losses of the margin, which the private machines take."""

PREDICTION_LOSSES = ("logistic", "hinge", "huber", "smooth", "sigmoid", "squared")
"""The losses of a prediction."""

METHODS = ("objective-gaussian", "objective", "output", "gradient", "output-laplace")
"""The mechanisms of a private machine, the default first."""

NEIGHBOURING = ("add-remove", "replace", "column", "row", "features")
"""What may differ between neighbouring data: a record more or less, another record in the place
of one, one feature column of one party, what one party holds of one row, labels public, or all the
features of one record, whoever holds them, labels public."""

OF_RECORDS = ("add-remove", "replace")
"""The relations between data that differ in one whole record, label included."""
