"""Builds the two extension modules; everything else is declared in pyproject.toml."""

import gzip
import os
import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

FILE_SOURCES = ["csrc/exact_decimal.cpp", "csrc/reader.cpp", "csrc/writer.cpp"]
CORE_SOURCES = sorted({path.as_posix() for path in Path("csrc").glob("*.cpp")} - set(FILE_SOURCES))
HEADERS = [path.as_posix() for path in Path("csrc").glob("*.hpp")]
BINDINGS = [path.as_posix() for path in Path("dpsvm").glob("*.pyx")]

# -ffp-contract=off: LIBSVM's iteration path is reproduced to the bit, and fused multiply-add would
# leave it.
GCC = ["-std=c++17", "-O3", "-ffp-contract=off", "-Wno-psabi", "-g0", "-pthread"]  # and clang
COMPILE_ARGS = {
    "unix": GCC,
    # GCC trusts the stack to be aligned as it is nowhere on Windows.
    "mingw32": [*GCC, "-Wa,-muse-unaligned-vector-move"],
    "msvc": ["/std:c++17", "/O2", "/clang:-O3", "/clang:-ffp-contract=off", "/EHsc", "/w"],
}
LINK_ARGS = {"unix": ["-pthread"], "mingw32": ["-static"], "msvc": []}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "freethreading_compatible": True,  # no state is shared: all of it belongs to the call
}

TAKEN = {"LICENSE", "README.md", "csrc", "dpsvm", "pyproject.toml", "setup.py"}

OLDEST_MACOS = "11.0"  # libc++ has no aligned new before 10.13
EARLIEST = 315532800  # 1980: a zip file knows no earlier day


class Build(build_ext):
    """Gives the extensions the flags of the compiler at hand."""

    def build_extensions(self):
        self.cython_directives = DIRECTIVES
        kind = self.compiler.compiler_type
        if kind == "msvc":
            self._use_clang_cl()
        for extension in self.extensions:
            extension.extra_compile_args = COMPILE_ARGS[kind]
            extension.extra_link_args = LINK_ARGS[kind]
        super().build_extensions()

    def _use_clang_cl(self):
        """Microsoft's own compiler has no vector types; its headers, library and linker serve."""
        if not self.compiler.initialized:
            self.compiler.initialize(self.plat_name)
        self.compiler.cc = shutil.which("clang-cl")
        if self.compiler.cc is None:
            raise SystemExit("dpsvm is built by clang-cl on Windows: put LLVM's on PATH")
        self.compiler.compile_options.remove("/GL")  # for link-time code generation of cl.exe


class SourceDistribution(sdist):
    """What a build takes, in an archive whose bytes depend on that and SOURCE_DATE_EPOCH alone."""

    def make_release_tree(self, base_dir, files):
        needed = [file for file in files if Path(file).parts[0] in TAKEN]
        super().make_release_tree(base_dir, needed)

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **_):
        moment = max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST)

        def plain(member):
            member.mtime = moment
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() else 0o644
            return member

        path = Path(f"{base_name}.tar.gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=plain)
        return str(path)


if sys.platform == "darwin":
    target = sysconfig.get_config_var("MACOSX_DEPLOYMENT_TARGET")
    if int(str(target).partition(".")[0]) < int(OLDEST_MACOS.partition(".")[0]):
        os.environ.setdefault("MACOSX_DEPLOYMENT_TARGET", OLDEST_MACOS)

BUILD = {
    "include_dirs": ["csrc"],
    "depends": HEADERS + BINDINGS,  # named here so that a source distribution holds them
    "language": "c++",
}

setup(
    cmdclass={"build_ext": Build, "sdist": SourceDistribution},
    ext_modules=[
        Extension("dpsvm._core", ["dpsvm/_core.pyx", *CORE_SOURCES], **BUILD),
        Extension("dpsvm._files", ["dpsvm/_files.pyx", *FILE_SOURCES], **BUILD),
    ],
)
