"""Programs run by Bochs, which emulates a processor with AVX-512 for machines that have none.

``Emulator.find`` looks for what it takes; ``Emulator.run`` puts static programs and files into a
small Linux image, boots it, and gathers what each command printed.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.common import Absent, note, require_program

MODEL = "corei7_skylake_x"
SECONDS = 3600  # the emulator gets no more

# isolinux and Bochs's two ROM images, where Debian's packages put them.
BOOT = {
    "isolinux.bin": ("/usr/lib/ISOLINUX/isolinux.bin", "isolinux"),
    "ldlinux.c32": ("/usr/lib/syslinux/modules/bios/ldlinux.c32", "syslinux-common"),
    "bios": ("/usr/share/bochs/BIOS-bochs-latest", "bochsbios"),
    "vgabios": ("/usr/share/vgabios/vgabios.bin", "vgabios"),
}

# The emulated processor tells a wrong size of the compacted form in which registers are saved;
# Linux would then turn AVX off altogether, so it is told not to use that form.
ISOLINUX = """\
DEFAULT linux
PROMPT 0
LABEL linux
  KERNEL /vmlinuz
  INITRD /initrd
  APPEND console=ttyS0 quiet loglevel=0 clearcpuid=xsaves,xsavec mitigations=off nokaslr \
cryptomgr.notests no_timer_check tsc=reliable
"""

BOCHS = """\
config_interface: textconfig
display_library: rfb, options="timeout=0"
cpu: model={model}, count=1, ips=50000000
memory: guest=512, host=512
romimage: file={bios}
vgaromimage: file={vgabios}
ata0-master: type=cdrom, path=image.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial.txt
log: bochs.txt
panic: action=fatal
clock: sync=none
"""

# Every answer is one line: @ name level exit-code, and what was printed.
INIT = """\
#!/bin/busybox sh
busybox() {{ /bin/busybox "$@"; }}
busybox mkdir -p /proc /tmp
busybox mount -t proc proc /proc
answer() {{
  name=$1 level=$2; shift 2
  text=$(DPSVM_CPU=$level "$@" 2>&1); code=$?
  echo "@ $name $level $code" $text
}}
answer processor any busybox sed -n '/^model name/s/.*: //p' /proc/cpuinfo
{lines}
answer end any true
busybox sleep 2
busybox poweroff -f
"""


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it printed, on one line."""

    code: int
    text: str

    @property
    def fields(self) -> dict[str, str]:
        """The name=value words; none where it failed."""
        words = self.text.split() if self.code == 0 else []
        return {name: value for name, _, value in (word.partition("=") for word in words)}


# By the command's name and the level it ran at.
Answers = dict[tuple[str, str], Answer]


@dataclass(frozen=True)
class Emulator:
    """Bochs and what it boots."""

    kernel: Path
    busybox: Path

    @classmethod
    def find(cls, kernel: Path | None) -> Emulator:
        """Everything needed, or Absent naming what is missing."""
        for program in ("bochs", "xorriso", "cpio"):
            require_program(program)
        for path, package in BOOT.values():
            if not Path(path).is_file():
                raise Absent(f"no {path}: Debian's package {package} has it")
        busybox = Path(require_program("busybox"))
        if subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode == 0:
            raise Absent(f"{busybox} is not static: Debian's package busybox-static has one")
        told = subprocess.run(
            ["bochs", "--help", "cpu"], capture_output=True, text=True, check=False
        )
        if MODEL not in (told.stdout + told.stderr).split():
            raise Absent(f"this Bochs has no {MODEL}: it was built without --enable-evex")
        kernels = [kernel] if kernel else sorted(Path("/boot").glob("vmlinuz-*"))
        if not kernels or not kernels[-1].is_file():
            raise Absent(
                "no Linux kernel: install linux-image-cloud-amd64, or unpack it and give --kernel"
            )
        return cls(kernels[-1].resolve(), busybox)

    def run(
        self,
        folder: Path,
        files: Iterable[Path],
        commands: Mapping[tuple[str, str], Sequence[str]],
    ) -> Answers:
        """What each command, by name and DPSVM_CPU, answers among the files, which lie in /."""
        lines = [" ".join(["answer", *key, *words]) for key, words in commands.items()]
        self._make_image(folder, files, lines)
        self._boot(folder)
        answers: Answers = {}
        for line in answer_lines(folder):
            name, level, code, *rest = line.split(maxsplit=3)
            answers[name, level] = Answer(int(code), " ".join(rest))
        for key in (*commands, ("end", "any")):
            if key not in answers:
                raise RuntimeError(f"the emulator ended before {' '.join(key)}")
        return answers

    def _make_image(self, folder: Path, files: Iterable[Path], lines: Sequence[str]) -> None:
        root, disc = folder / "root", folder / "disc"
        (root / "bin").mkdir(parents=True)
        (disc / "isolinux").mkdir(parents=True)
        shutil.copy(self.busybox, root / "bin" / "busybox")
        for file in files:
            shutil.copy(file, root / file.name)
        (root / "init").write_text(INIT.format(lines="\n".join(lines)))
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with (disc / "initrd").open("wb") as stream:
            pack = ["cpio", "--quiet", "-o", "-H", "newc"]
            subprocess.run(pack, cwd=root, input=names.encode(), stdout=stream, check=True)
        shutil.copy(self.kernel, disc / "vmlinuz")
        for name in ("isolinux.bin", "ldlinux.c32"):
            shutil.copy(BOOT[name][0], disc / "isolinux" / name)
        (disc / "isolinux" / "isolinux.cfg").write_text(ISOLINUX)
        boot = "-b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4"
        make = ["xorriso", "-as", "mkisofs", "-quiet", *boot.split(), "-boot-info-table"]
        whole = [*make, "-o", str(folder / "image.iso"), str(disc)]
        subprocess.run(whole, check=True, capture_output=True)

    def _boot(self, folder: Path) -> None:
        """Until the image turns the machine off; answers are told as they come."""
        words = BOCHS.format(model=MODEL, bios=BOOT["bios"][0], vgabios=BOOT["vgabios"][0])
        (folder / "bochsrc").write_text(words)
        (folder / "debugger").write_text("c\nq\n")  # continue and quit, where it has a debugger
        started, told = time.perf_counter(), 0
        with (
            (folder / "debugger").open() as stdin,
            (folder / "screen.txt").open("w") as screen,
            subprocess.Popen(
                ["bochs", "-q", "-f", "bochsrc"],
                cwd=folder,
                stdin=stdin,
                stdout=screen,
                stderr=subprocess.STDOUT,
            ) as bochs,
        ):
            try:
                while bochs.poll() is None and time.perf_counter() - started < SECONDS:
                    time.sleep(1)
                    lines = answer_lines(folder)
                    for line in lines[told:]:
                        note(f"{time.perf_counter() - started:7.1f} s  {line[:80]}")
                    told = len(lines)
            finally:
                bochs.kill()


def answer_lines(folder: Path) -> list[str]:
    """The answers so far, as whole lines without their mark."""
    serial = folder / "serial.txt"
    text = serial.read_text(errors="replace") if serial.is_file() else ""
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [line.removeprefix("@ ").strip() for line in whole if line.startswith("@ ")]
