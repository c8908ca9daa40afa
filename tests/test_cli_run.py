"""``dpsvm run``: a program runs as under python, with dpsvm's classes in it and its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpsvm

HOME = str(Path(dpsvm.__path__[0]).parent)
OURS = "dpsvm.svm.classification"
PRINT = "print(SVC.__module__)\n"


def start(*words: str, folder: Path, stdin: int | None = None, **variables: str):
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": HOME} | variables,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(*words: str, folder: Path, given: str = "", **variables: str) -> tuple[int, str, str]:
    with start(*words, folder=folder, stdin=subprocess.PIPE, **variables) as process:
        out, err = process.communicate(given)
    return process.returncode, out, err


def run(*words: str, folder: Path, given: str = "", **variables: str) -> tuple[int, str, str]:
    return python("-m", "dpsvm", "run", *words, folder=folder, given=given, **variables)


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str, name: str = "script.py") -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return name

    return write


@pytest.mark.parametrize(
    "text",
    [
        "import sys; print(sys.argv, __name__, __file__, sys.path, __spec__, sys.orig_argv[1:])\n"
        "print('numpy' in sys.modules, vars(sys.modules['__main__']).keys())\n"
        "print(sys.stdin.read()[::-1]); print('err', file=sys.stderr); sys.exit(7)",
        "raise SystemExit('a reason')",
        "import os; print('flushed', flush=True); os._exit(9)",
        "from sklearn.svm import SVC\ndef f():\n    return 1 / 0\nf()",
        "raise KeyboardInterrupt",
        "this is no Python",
        "import atexit; atexit.register(print, 'last')\nimport warnings; warnings.warn('mine')",
    ],
)
def test_a_script_does_what_it_does_under_python(text: str, script: Any, tmp_path: Path) -> None:
    name = script(text)
    words = (name, "--help", "-m", "a b")
    assert run(*words, folder=tmp_path, given="typed") == python(
        *words, folder=tmp_path, given="typed"
    )


@pytest.mark.parametrize("words", [("none.py",), ("-m", "no_such_module"), ("-c", "1/0")])
def test_what_python_refuses_is_refused_in_its_words(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert run(*words, folder=tmp_path) == python(*words, folder=tmp_path)


def test_modules_folders_and_standard_input_run_too(script: Any, tmp_path: Path) -> None:
    text = f"import sys\nfrom sklearn.svm import SVC\n{PRINT}print(sys.argv[1:], __name__)\n"
    script(text, "package/__main__.py")
    script("", "package/__init__.py")
    expected = (0, f"{OURS}\n['a'] __main__\n", "")
    assert run("-m", "package", "a", folder=tmp_path) == expected
    assert run("package", "a", folder=tmp_path) == expected
    assert run("-", "a", folder=tmp_path, given=text) == expected
    assert run("-c", text, "a", folder=tmp_path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from sklearn.svm import SVC",
        "import sklearn; SVC = sklearn.svm.SVC",
        "import sklearn.calibration; from sklearn.svm import *",
        "import dpsvm; from sklearn import svm; SVC = svm.SVC",
        "import sklearn.svm._classes as private, sklearn.svm as public; SVC = public.SVC",
    ],
)
def test_however_the_class_is_imported(text: str, script: Any, tmp_path: Path) -> None:
    name = script(f"{text}\n{PRINT}")
    assert run(name, folder=tmp_path) == (0, f"{OURS}\n", "")


def test_nothing_is_imported_while_a_module_is_looked_for(script: Any, tmp_path: Path) -> None:
    """Python holds its import lock then, and a thread that imports could wait for ever."""
    name = script(
        "import builtins, sys, sklearn\n"
        "true_import = builtins.__import__\n"
        "builtins.__import__ = None\n"
        "spec = sys.meta_path[0].find_spec('sklearn.svm', sklearn.__path__)\n"
        "builtins.__import__ = true_import\n"
        "print(spec.name)\n"
    )
    assert run(name, folder=tmp_path) == (0, "sklearn.svm\n", "")


def test_threads_may_import_at_once(script: Any, tmp_path: Path) -> None:
    name = script(
        "import threading\n"
        "from importlib import import_module\n"
        "import sklearn.preprocessing, scipy.optimize\n"
        "assert 'sklearn.svm' not in __import__('sys').modules\n"
        "names = ['sklearn.svm', 'sklearn.svm._classes', 'csv', 'inspect'] * 2\n"
        "together, found = threading.Barrier(len(names)), []\n"
        "def work(name):\n"
        "    together.wait()\n"
        "    import_module(name)\n"
        "    from sklearn.svm import SVC\n"
        "    found.append(SVC.__module__)\n"
        "threads = [threading.Thread(target=work, args=[name]) for name in names]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(found), set(found))\n"
    )
    assert run(name, folder=tmp_path) == (0, f"8 {{'{OURS}'}}\n", "")


def test_pytest_runs_with_the_classes(script: Any, tmp_path: Path) -> None:
    script(
        "from sklearn.svm import SVC\n"
        f"def test_class(): assert SVC.__module__ == {OURS!r}\n"
        "def test_fails(): assert SVC is None\n",
        "test_of_a_user.py",
    )
    words = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "test_of_a_user.py")
    code, out, _ = run(*words, folder=tmp_path)
    assert code == 1
    assert "1 failed, 1 passed" in out


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_child_processes_have_the_classes(method: str, script: Any, tmp_path: Path) -> None:
    import multiprocessing

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    name = script(
        "import multiprocessing, sys\n"
        "from sklearn.svm import SVC\n"
        "def work(C):\n"
        "    from sklearn.svm import SVC as again\n"
        "    machine = SVC(C=C).fit([[0.0], [1.0]], [0, 1])\n"
        "    return machine, again.__module__\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    with context.Pool(2) as pool:\n"
        "        for machine, again in pool.map(work, [1.0, 2.0]):\n"
        "            print(type(machine).__module__, again)\n"
    )
    assert run(name, folder=tmp_path) == (0, f"{OURS} {OURS}\n" * 2, "")


def test_a_grid_search_on_two_processes(script: Any, tmp_path: Path) -> None:
    name = script(
        "from joblib import Parallel, delayed\n"
        "from sklearn.datasets import load_iris\n"
        "from sklearn.model_selection import GridSearchCV\n"
        "from sklearn.svm import SVC\n"
        "def where():\n"
        "    from sklearn.svm import SVC as again\n"
        "    return SVC.__module__, again.__module__\n"
        "X, y = load_iris(return_X_y=True)\n"
        "grid = GridSearchCV(SVC(), {'C': [0.1, 1]}, cv=2, n_jobs=2).fit(X, y)\n"
        "print(type(grid.best_estimator_).__module__, grid.best_params_)\n"
        "print(set(Parallel(n_jobs=2)(delayed(where)() for _ in range(4))))\n"
    )
    expected = f"{OURS} {{'C': 1}}\n{{('{OURS}', '{OURS}')}}\n"
    assert run(name, folder=tmp_path) == (0, expected, "")


def test_a_python_that_the_script_starts_has_the_classes(script: Any, tmp_path: Path) -> None:
    name = script(
        "import subprocess, sys\n"
        f"code = 'from sklearn.svm import SVC; {PRINT.strip()}'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert run(name, folder=tmp_path) == (0, f"{OURS}\n", "")


def test_another_python_without_dpsvm_keeps_scikit_learns_and_says_so(
    script: Any, tmp_path: Path
) -> None:
    """As one of another version would be: the child is kept from finding dpsvm."""
    script("raise ImportError('built for another Python')\n", "dpsvm.py")
    name = script("from sklearn.svm import SVC\n" + PRINT)
    code, out, err = run(name, folder=tmp_path, PYTHONSAFEPATH="1")  # the command itself finds it
    assert (code, out, err) == (0, f"{OURS}\n", "")
    environment = {"PYTHONPATH": f"{Path(HOME, 'dpsvm', 'startup')}{os.pathsep}{tmp_path}"}
    code, out, err = python(name, folder=tmp_path, **environment)
    assert (code, out) == (0, "sklearn.svm._classes\n")
    assert err == f"dpsvm run: warning: not in {sys.executable}: built for another Python\n"


def test_a_script_that_patches_itself_is_told(script: Any, tmp_path: Path) -> None:
    name = script("import dpsvm\ndpsvm.patch_sklearn()\n")
    code, _, err = run(name, folder=tmp_path)
    assert code == 1
    assert err.splitlines()[-1].startswith("RuntimeError: scikit-learn is patched already")


def test_a_script_may_unpatch(script: Any, tmp_path: Path) -> None:
    name = script(
        "import dpsvm, sklearn.svm\ndpsvm.unpatch_sklearn()\nprint(sklearn.svm.SVC.__module__)\n"
    )
    assert run(name, folder=tmp_path) == (0, "sklearn.svm._classes\n", "")


def test_a_hidden_sitecustomize_is_read(script: Any, tmp_path: Path) -> None:
    script("import sys; sys.marked = True\n", "site/sitecustomize.py")
    name = script(
        "import sys\n"
        "from sklearn.svm import SVC\n"
        f"print(sys.marked, sys.modules['sitecustomize'])\n{PRINT}"
    )
    paths = f"{tmp_path / 'site'}{os.pathsep}{HOME}"
    code, out, err = run(name, folder=tmp_path, PYTHONPATH=paths)
    _, expected, _ = python(name, folder=tmp_path, PYTHONPATH=paths)
    assert (code, err) == (0, "")
    assert out == expected.replace("sklearn.svm._classes", OURS)
    assert out.startswith("True")


def test_a_hidden_sitecustomize_that_fails_is_reported_as_ever(script: Any, tmp_path: Path) -> None:
    script("import nothing_of_this_name\n", "site/sitecustomize.py")
    name = script("from sklearn.svm import SVC\n" + PRINT)
    paths = f"{tmp_path / 'site'}{os.pathsep}{HOME}"
    code, out, err = run(name, folder=tmp_path, PYTHONPATH=paths)
    assert (code, out) == (0, f"{OURS}\n")
    expected = python(name, folder=tmp_path, PYTHONPATH=paths)[2]
    assert "nothing_of_this_name" in expected
    assert err == 2 * expected  # the command is a Python program, too


def test_run_within_run_changes_nothing(script: Any, tmp_path: Path) -> None:
    name = script(
        "import os, sys\n"
        "print(os.environ['PYTHONPATH'], flush=True)\n"
        "if len(sys.argv) == 1:\n"
        "    words = [sys.executable, '-m', 'dpsvm', 'run', __file__, 'again']\n"
        "    os.execv(sys.executable, words)\n"
    )
    code, out, _ = run(name, folder=tmp_path)
    first, second = out.splitlines()
    assert code == 0
    assert first == second


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_is_the_scripts_to_answer(script: Any, tmp_path: Path) -> None:
    name = script(
        "import sys\n"
        "from sklearn.svm import SVC\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
        "except KeyboardInterrupt:\n"
        "    print('answered'); sys.exit(3)\n"
    )
    words = ("-m", "dpsvm", "run", name)
    with start(*words, folder=tmp_path, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (3, "answered\n", "")


def test_verbose_tells_what_was_taken_over(script: Any, tmp_path: Path) -> None:
    name = script("from sklearn.svm import SVC\n")
    _, _, err = run(name, folder=tmp_path, DPSVM_VERBOSE="1")
    assert err.startswith("dpsvm: taken over: sklearn.svm.")
    assert err.count("\n") == 1
    name = script("print('no machine here')\n")
    assert run(name, folder=tmp_path, DPSVM_VERBOSE="1") == (0, "no machine here\n", "")


def test_in_the_source_folder(script: Any, tmp_path: Path) -> None:
    """``python -m dpsvm`` finds the package in the current folder; the script's folder differs."""
    name = script("from sklearn.svm import SVC\n" + PRINT)
    code, out, err = run(str(tmp_path / name), folder=Path(HOME), PYTHONPATH="")
    assert (code, out, err) == (0, f"{OURS}\n", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "expected a script or -m and a module"),
        (("-m",), "-m needs a module"),
        (("-c",), "-c needs a command"),
        (("-I", "script.py"), "unknown flag -I: set python's by its environment"),
        (("--verbose",), "unknown flag --verbose: set python's by its environment"),
    ],
)
def test_wrong_words(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    code, out, err = run(*words, folder=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"dpsvm run: error: {reason} (usage: dpsvm run SCRIPT")
    assert err.count("\n") == 1


def test_help(tmp_path: Path) -> None:
    code, out, err = run("--help", folder=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("usage: dpsvm run SCRIPT")
    assert "DPSVM_VERBOSE" in out
