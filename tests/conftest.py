"""What every test runs under."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from shared_data import ABSENT

# Of bench, whose parts some tests import; at the end, so that an installed dpsvm comes first.
sys.path.append(str(Path(__file__).resolve().parent.parent))

# The same examples every time: a failure can be repeated, and one change is judged by one set. No
# example has a deadline: a busy machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts background jobs with Ctrl-C ignored; the tests and their children hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the data, the tests that need them are skipped, and say why."""
    for item in items:
        if ABSENT and item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=ABSENT))
