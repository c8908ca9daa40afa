"""The table of parameters: one row for each setting, checked wherever it is used."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from sklearn.utils._param_validation import make_constraint

from dpsvm import constraints
from dpsvm.svm.parameters import BY_FLAG, KERNELS, MACHINES, TABLE, Parameters
from dpsvm.svm.selectors import with_numbers

LIBSVM_DEFAULTS = {
    "-s": "c-svc",
    "-t": "rbf",
    "-d": 3,
    "-g": 0.0,
    "-r": 0.0,
    "-c": 1.0,
    "-n": 0.5,
    "-p": 0.1,
    "-m": 100.0,
    "-e": 1e-3,
    "-h": True,
    "-b": False,
}


def test_every_libsvm_flag_has_a_row_with_libsvms_default() -> None:
    assert {flag: BY_FLAG[flag].default for flag in LIBSVM_DEFAULTS} == LIBSVM_DEFAULTS


def test_the_defaults_of_the_dataclass_are_those_of_the_table() -> None:
    parameters = Parameters()
    assert {name: row.default for name, row in TABLE.items()} == {
        column.name: getattr(parameters, column.name) for column in fields(Parameters)
    }


def test_flags_are_unique_and_every_row_says_what_it_means() -> None:
    assert len(BY_FLAG) == len(TABLE)
    assert all(row.meaning for row in TABLE.values())


@pytest.mark.parametrize(("flag", "names"), [("-s", MACHINES), ("-t", KERNELS)])
def test_codes_are_read_as_names(flag: str, names: tuple[str, ...]) -> None:
    assert [BY_FLAG[flag].read(str(code)) for code in range(5)] == list(names)


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [("-c", "1e2", 100.0), ("-d", "4", 4), ("-h", "0", False), ("--selector", "wss1", "wss1")],
)
def test_text_is_read_as_a_value(flag: str, text: str, value: Any) -> None:
    assert BY_FLAG[flag].read(text) == value


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("-s", "5"),
        ("-t", "rbf"),
        ("-d", "2.5"),
        ("-d", "-1"),
        ("-g", "-0.5"),
        ("-g", "nan"),
        ("-r", "inf"),
        ("-c", "0"),
        ("-c", "nan"),
        ("-c", ""),
        ("-n", "1.5"),
        ("-n", "0"),
        ("-p", "-1"),
        ("-m", "0"),
        ("-m", "inf"),
        ("-e", "0"),
        ("-h", "2"),
        ("-b", "yes"),
        ("--selector", "wss9"),
        ("--sigma", "1"),
        ("--selection-epsilon", "0"),
        ("--time-limit", "0"),
    ],
)
def test_refused_text_is_named_with_its_flag(flag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{flag} {text}: "):
        BY_FLAG[flag].read(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("machine", "svc"),
        ("kernel", "gauss"),
        ("degree", -1),
        ("degree", 2**40),
        ("gamma", -1.0),
        ("gamma", math.nan),
        ("coef0", math.inf),
        ("C", 0.0),
        ("C", "1"),
        ("nu", 0.0),
        ("epsilon", -0.1),
        ("cache_size", 0),
        ("tol", 0.0),
        ("tol", math.nan),
        ("shrinking", "no"),
        ("max_iter", -2),
        ("time_limit", -1.0),
        ("selector", "wss5"),
        ("selection_epsilon", 0.0),
        ("sigma", 1.0),
    ],
)
def test_a_refused_value_is_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be .*got {value!r}$"):
        Parameters(**{name: value})


def test_a_number_of_a_selector_does_not_take_the_place_of_a_setting() -> None:
    with pytest.raises(TypeError, match="'sigma' is a field of Taken"):
        with_numbers(lambda _: None)(type("Taken", (), {"__annotations__": {"sigma": "float"}}))


def test_train_options_are_what_the_core_takes() -> None:
    options = Parameters(time_limit=None, cache_size=2.5).train_options()
    assert options["time_limit"] == math.inf
    assert options["cache_bytes"] == 2_621_440
    assert not {"probability", "cache_size"} & set(options)
    assert Parameters().kernel_options().items() <= Parameters().train_options().items()


def test_a_cache_beyond_the_address_space_is_all_of_it() -> None:
    assert Parameters(cache_size=1e300).train_options()["cache_bytes"] == 2**63 - 1


VALUES = (
    *(-1, 0, 1, 3, 2**31 - 1, 2**31, 2**63, -1.0, 0.0, 0.5, 1.0, 1.5),
    *(math.inf, -math.inf, math.nan, True, False, None, "rbf", "wss2", "much"),
    *(np.bool_(True), np.float32(0.5), np.int64(7)),
)


@pytest.mark.parametrize("name", TABLE)
def test_the_constraints_are_those_that_scikit_learn_is_given(name: str) -> None:
    theirs = [make_constraint(one.to_sklearn()) for one in TABLE[name].allowed]
    for value in VALUES:
        ours = any(one.allows(value) for one in TABLE[name].allowed)
        assert ours == any(one.is_satisfied_by(value) for one in theirs), value


def test_intervals_are_put_in_scikit_learns_words() -> None:
    for row in TABLE.values():
        for one in row.allowed:
            if isinstance(one, constraints.Interval):
                assert str(one) == str(one.to_sklearn())
