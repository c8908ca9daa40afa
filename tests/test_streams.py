"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from dpsvm.data import atomic_write


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write(path) as file:
            file.write("half of the new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stands_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_of_any_other_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with atomic_write(tmp_path / "model", "wb") as file:
        file.write(b"\x00")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with atomic_write(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with atomic_write(os.devnull) as file:
        file.write("gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_folder_that_does_not_exist_is_reported_under_the_name_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "model"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(path):
        pytest.fail("the file was opened")
    assert caught.value.filename == str(path)


def test_a_folder_is_not_a_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pytest.fail("the folder was opened")


def test_an_empty_name_is_not_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught, atomic_write(""):
        pytest.fail("a file was opened")
    assert caught.value.filename == ""


@pytest.mark.parametrize("mode", ["a", "r+", "x"])
def test_only_whole_files_can_be_written(mode: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode must be"), atomic_write(tmp_path / "model", mode):
        pytest.fail("the file was opened")


posix = pytest.mark.skipif(os.name != "posix", reason="POSIX pipes and descriptors")


@posix
def test_a_pipe_with_a_name_is_written_into(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(path.read_bytes()))
    reader.start()
    with atomic_write(path, "wb") as file:
        file.write(b"a model")
    reader.join()
    assert heard == [b"a model"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@posix
@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_descriptor_is_written_to_where_it_stands(folder: str, tmp_path: Path) -> None:
    if not os.path.isdir(folder):
        pytest.skip(f"no {folder}")
    with open(tmp_path / "log", "wb", buffering=0) as file:
        file.write(b"before, ")
        with atomic_write(f"{folder}/{file.fileno()}") as model:
            model.write("a model, ")
        file.write(b"after")
    assert (tmp_path / "log").read_text() == "before, a model, after"
    assert list(tmp_path.iterdir()) == [tmp_path / "log"]


@posix
def test_standard_output_is_written_to_after_what_was_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    print("printed, ", end="")
    with atomic_write("/dev/stdout", "wb") as file:
        file.write(b"a model")
    assert capfd.readouterr().out == "printed, a model"


@posix
def test_a_descriptor_that_is_not_open_is_reported_by_name() -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as caught:  # noqa: SIM117
        with atomic_write("/dev/fd/987654"):
            pytest.fail("it was opened")
    assert caught.value.filename == "/dev/fd/987654"
