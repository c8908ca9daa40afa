"""Startup kits of NVIDIA FLARE: keys, certificates for mutual TLS, and the policy of a site.

``provision`` makes those of a server, of all sites and of an admin on one machine, which then has
every key. Between organisations each makes its own key, which never leaves it: ``request`` writes
what a signer must see, ``sign`` gives certificates for that, ``assemble`` makes the kit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsvm.federation.job import check_name, read_toml
from dpsvm.federation.nvflare_export import AUTHORIZATION, POINTER, RESOURCES
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import make_folder

ADMIN = "admin@dpsvm.federation"
HOST, PORT = "localhost", 8002
_PROJECT = "dpsvm"
_LIGHTER = "nvflare.lighter.impl"
_OTHERS = 0o077
_AUTHORITY = "dpsvm/state/cert.json"  # where provision keeps the key that signs


@dataclass(frozen=True)
class Kits:
    """The startup kits in a folder: all of a federation, or those of one organisation."""

    server: Path | None
    sites: Mapping[str, Path]
    admin: Path | None

    @classmethod
    def find(cls, folder: str | os.PathLike[str]) -> Kits:
        """Those that were made in a folder, or in the folders in it; nobody else may read keys."""
        found: dict[str, list[Path]] = {"server": [], "client": [], "admin": []}
        for kind, kits in found.items():
            pattern = f"{_PROJECT}/prod_00/*/startup/fed_{kind}.json"
            paths = sorted([*Path(folder).glob(pattern), *Path(folder).glob(f"*/{pattern}")])
            kits.extend(path.parents[1].resolve() for path in paths)
        if not any(found.values()) or any(len(found[one]) > 1 for one in ("server", "admin")):
            raise ValueError(f"{folder}: no startup kits of a federation are here")
        for kits in found.values():
            for kit in kits:
                check_rights(kit)
        _check_secret(Path(folder, _AUTHORITY), Path(folder))
        sites = {kit.name: kit for kit in found["client"]}
        server, admin = (next(iter(found[kind]), None) for kind in ("server", "admin"))
        return cls(server, sites, admin)

    @property
    def all(self) -> list[Path]:
        """Every kit."""
        return [one for one in (self.server, *self.sites.values(), self.admin) if one is not None]


def check_rights(kit: Path) -> None:
    """Refuse a kit whose keys others may read."""
    for key in sorted((kit / "startup").glob("*.key")):
        _check_secret(key, kit)


def _check_secret(file: Path, folder: Path) -> None:
    if os.name == "posix" and file.is_file() and file.stat().st_mode & _OTHERS:
        raise Refusal(
            f"others may read {file}: chmod -R go= {folder}, if nobody has; else make new keys"
        )


def provision(
    folder: str | os.PathLike[str],
    sites: Sequence[str | os.PathLike[str]],
    *,
    host: str = HOST,
    port: int = PORT,
) -> Kits:
    """Make the kits of a server and of some sites, whose files are given, and prepare them.

    The first site coordinates: the server gets its file too. All keys are in the folder.
    """
    folder, files = Path(folder), [Path(site).resolve() for site in sites]
    names = [_name_of(file) for file in files]
    _own(folder, empty=True)
    project = folder / "project.yml"
    project.write_text(json.dumps(_project(names, host, port), indent=1))  # JSON is YAML
    _nvflare(["provision", "-p", str(project), "-w", str(folder)])
    kits = Kits.find(folder)
    assert kits.server is not None
    prepare(kits.server, files[0])
    for name, file in zip(names, files, strict=True):
        prepare(kits.sites[name], file)
    return kits


def request(
    folder: str | os.PathLike[str],
    site: str | os.PathLike[str] | None,
    *,
    server: str | None = None,
    port: int = PORT,
) -> Path:
    """Make a key in a new folder, and beside it the request for a certificate, to be sent away.

    site : the file of the site; None for the admin who submits jobs
    server : makes the key of the server of that name, at which this site coordinates
    """
    folder = Path(folder)
    if site is None:
        who = {"name": ADMIN, "type": "admin", "org": "hub", "role": "lead"}
    elif server is not None:
        who = _server(server, port)
    else:
        name = _name_of(Path(site))
        who = {"name": name, "type": "client", "org": org_of(name)}
    _own(folder, empty=True)
    with tempfile.TemporaryDirectory() as other:
        participant = Path(other, "participant.yml")
        participant.write_text(json.dumps({"name": _PROJECT, "participants": [who]}))
        _nvflare(["cert", "request", "-p", str(participant), "--out", str(folder)])
    if site is not None:
        _point(folder / POINTER, site)
    return folder / f"{who['name']}.request.zip"


@dataclass(frozen=True)
class Signed:
    """What a signer gives back."""

    file: Path
    name: str
    kind: str  # "client", "server" or "lead", who is the admin
    key: str  # SHA-256 of the public key
    fingerprint: str  # of the signer's certificate: to be told over another channel


def sign(
    folder: str | os.PathLike[str],
    requests: Sequence[str | os.PathLike[str]],
    *,
    host: str = HOST,
    port: int = PORT,
) -> list[Signed]:
    """Give certificates for requests. The folder is that of the signer, made when it is not there.

    host, port : of the server; those that the folder was made with stay
    """
    folder = Path(folder)
    _own(folder)
    authority, profile = folder / "authority", folder / "profile.yml"
    commands = []
    if not (authority / "ca.json").exists():
        profile.write_text(json.dumps(_profile(host, port), indent=1))
        commands.append(["cert", "init", "--profile", str(profile), "-o", str(authority)])
    _check_secret(authority / "rootCA.key", folder)
    told = json.loads(profile.read_text())["server"]
    if (told["host"], told["fed_learn_port"]) != (host, port):
        made_for = f"{told['host']}:{told['fed_learn_port']}"
        raise ValueError(f"{folder} was made for the server {made_for}, not for {host}:{port}")
    which = ["--ca-dir", str(authority), "--profile", str(profile)]
    files = [
        folder / f"{Path(one).name.removesuffix('.request.zip')}.signed.zip" for one in requests
    ]
    for one, file in zip(requests, files, strict=True):
        commands.append(["cert", "approve", str(Path(one).resolve()), *which, "--out", str(file)])
    _nvflare(*commands)
    fingerprint = json.loads((authority / "ca.json").read_text())["rootCA_fingerprint"]
    return [_signed(file, fingerprint) for file in files]


def _signed(file: Path, fingerprint: str) -> Signed:
    with zipfile.ZipFile(file) as content:
        facts = json.loads(content.read("signed.json"))
    key = facts["hashes"]["public_key_sha256"]
    return Signed(file, facts["name"], facts["cert_type"], key, fingerprint)


def assemble(
    folder: str | os.PathLike[str], signed: str | os.PathLike[str], *, fingerprint: str
) -> Path:
    """Make the startup kit in the folder of a request, and prepare it.

    fingerprint : of the signer's certificate, as the signer told it over another channel
    """
    folder, file = Path(folder).resolve(), str(Path(signed).resolve())
    _own(folder)
    more = ["-w", str(folder), "--request-dir", str(folder), "--fingerprint", fingerprint]
    _nvflare(["package", file, *more])
    [kit] = Kits.find(folder).all
    if (folder / POINTER).exists():
        prepare(kit, read_toml(folder / POINTER)["site"])
    return kit


def prepare(kit: str | os.PathLike[str], site: str | os.PathLike[str]) -> None:
    """Give a kit its policy, and the file of its site."""
    kit, local = Path(kit).resolve(), Path(kit, "local").resolve()
    check_rights(kit)
    resources = json.loads((local / "resources.json.default").read_text()) | RESOURCES
    if "servers" in resources:
        _prepare_server(resources, kit)
    kit.chmod(0o700)
    (local / "resources.json").write_text(json.dumps(resources, indent=1))
    (local / "authorization.json").write_text(json.dumps(AUTHORIZATION, indent=1))
    (kit / "transfer").mkdir(exist_ok=True)
    point(kit, site)


def point(kit: str | os.PathLike[str], site: str | os.PathLike[str]) -> None:
    """Tell a kit which file its site has; the next job goes by it."""
    _point(Path(kit, "local", POINTER), site)


def org_of(name: str) -> str:
    """The organisation of a site, in the letters that NVIDIA FLARE takes.

    >>> org_of("north-clinic")
    'north_clinic'
    """
    return re.sub(r"\W", "_", name)


def _point(file: Path, site: str | os.PathLike[str]) -> None:
    name = json.dumps(str(Path(site).resolve()))
    file.write_text(f"site = {name}\n", encoding="utf-8")


def _name_of(site: Path) -> str:
    return check_name(read_toml(site).get("name"), f"{site}: name")


def _own(folder: Path, *, empty: bool = False) -> None:
    """Make a folder that only its owner may enter, or take one that is there."""
    if empty and folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder}: not an empty folder")
    make_folder(folder)
    folder.chmod(0o700)


_EACH = """
import json, sys
from nvflare.cli import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def _nvflare(*commands: Sequence[str]) -> str:
    """What some of its commands say, one after the other, while none of them fails.

    What they write is for its owner alone. The notes that they keep in the home folder are dropped.
    """
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _EACH, json.dumps(commands)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": home},
            umask=_OTHERS if os.name == "posix" else -1,
        )
    if done.returncode:
        words = " ".join(commands[0][:2])
        raise RuntimeError(f"nvflare {words} failed: {done.stdout}{done.stderr}")
    return done.stdout


def _prepare_server(resources: dict[str, Any], kit: Path) -> None:
    """Stores in the kit, not in a folder that all federations of a machine share; no long waits."""
    resources["servers"][0]["heart_beat_timeout"] = 30
    storage = resources["snapshot_persistor"]["args"]["storage"]["args"]
    storage["root_dir"] = str(kit / "snapshot-storage")
    arguments = {one["id"]: one.setdefault("args", {}) for one in resources["components"]}
    arguments["job_manager"]["uri_root"] = str(kit / "jobs-storage")
    arguments["job_scheduler"] |= {
        "max_jobs": 1,
        "min_schedule_interval": 1.0,
        "max_schedule_interval": 2.0,
        "max_schedule_count": 60,
    }


def _server(host: str, port: int) -> dict[str, Any]:
    ports = {"fed_learn_port": port, "admin_port": port}
    return {"name": host, "type": "server", "org": "hub", **ports}


def _profile(host: str, port: int) -> dict[str, Any]:
    server = {"host": host, "fed_learn_port": port, "admin_port": port}
    transport = {"scheme": "grpc", "connection_security": "mtls"}
    return {"name": _PROJECT, **transport, "server": server}


def _project(names: Sequence[str], host: str, port: int) -> dict[str, Any]:
    builders: dict[str, dict[str, Any]] = {
        "workspace.WorkspaceBuilder": {"template_file": ["master_template.yml"]},
        "static_file.StaticFileBuilder": {"config_folder": "config", "scheme": "grpc"},
        "cert.CertBuilder": {},
        "signature.SignatureBuilder": {},
    }
    return {
        "api_version": 3,
        "name": _PROJECT,
        "description": "sites that train a joint model",
        "participants": [
            _server(host, port),
            *({"name": name, "type": "client", "org": org_of(name)} for name in names),
            {"name": ADMIN, "type": "admin", "org": "hub", "role": "lead"},
        ],
        "builders": [{"path": f"{_LIGHTER}.{p}", "args": args} for p, args in builders.items()],
    }
