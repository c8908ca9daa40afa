"""A job in the form that NVIDIA FLARE takes, and the policy by which sites admit nothing else.

The job names two classes of the dpsvm that every site has installed, and holds the terms of the
run: no code, no data. NVIDIA FLARE is not needed to write it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dpsvm.federation.job import Job

CONTROLLER = "dpsvm.federation.nvflare.CoordinatorController"
EXECUTOR = "dpsvm.federation.nvflare.PartyExecutor"
TASK = "dpsvm"
TERMS = "job.json"
"""The terms of the run, beside the configuration of the job."""
STATS = "dpsvm"
"""The group of what the coordinator's process tells the admin of how far it is."""
POINTER = "dpsvm.toml"
"""Names the file of a site, in the folder "local" of its startup kit."""

RESOURCES: dict[str, Any] = {
    "class_list_enforcement_mode": "enforce",
    "class_allow_list": [CONTROLLER, EXECUTOR],
    "allow_log_streaming": False,
}
"""What resources.json of a site must say; logs stay there, since they may name files and rows."""

_RIGHTS = {
    "submit_job": "any",
    "clone_job": "none",
    "manage_job": "n:submitter",
    "download_job": "n:submitter",
    "view": "any",
    "operate": "any",
    "shell_commands": "none",
    "byoc": "none",
}
AUTHORIZATION: dict[str, Any] = {"format_version": "1.0", "permissions": {"lead": _RIGHTS}}
"""What authorization.json of a site must say: nobody brings code."""

_CLIENT = {
    "format_version": 2,
    "runner_sync_timeout": 1.0,
    "task_check_interval": 0.2,
    "job_heartbeat_interval": 1.0,
    "get_task_timeout": 10.0,
    "submit_task_result_timeout": 30.0,
    "end_run_readiness_timeout": 1.0,
    "components": [],
    "executors": [{"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}}],
}

_README = """\
Run {run} of the sites {parties}, for NVIDIA FLARE 2.9.

job/                        submit this: nvflare job submit -j job --startup-kit ADMIN_KIT
policy/authorization.json   of every site and of the server, into local/ of the startup kit
policy/resources.json       of every site and of the server: copy local/resources.json.default to
                            local/resources.json, and put these values in the place of its own

Every site, and the server, also needs local/dpsvm.toml with one line that names its own file:

site = "/folder/of/the/site/site.toml"

The server's is that of the coordinator{owner}. These two commands do it for a kit:

dpsvm federation nvflare prepare KIT SITE.toml
KIT/startup/start.sh

The terms of the run are in job/app/config/job.json. What protects a site is its own: its policy,
the [bounds] it agreed to, and its ledger.
"""


def export(
    job: Job,
    folder: str | os.PathLike[str],
    *,
    reply_timeout: float = 600.0,
    dry: bool = False,
) -> list[Path]:
    """Write the job and the policy into a folder that is new or empty; the files.

    reply_timeout : seconds that a party has for an answer
    dry : greet and rehearse only

    >>> import tempfile
    >>> job = Job("heart-1", "sharing", ("clinic", "lab"), "clinic")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in export(job, folder) if "config" in path.parts)
    ['config_fed_client.json', 'config_fed_server.json', 'job.json']
    """
    folder = Path(folder)
    if "server" in job.parties:
        raise ValueError("NVIDIA FLARE calls the coordinator 'server': no party can have this name")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: not an empty folder")
    owner = "" if job.label_owner is None else f", {job.label_owner}"
    config = Path("job", "app", "config")
    files = {
        Path("job", "meta.json"): _text(_meta(job)),
        config / "config_fed_server.json": _text(_server(reply_timeout, dry=dry)),
        config / "config_fed_client.json": _text(_CLIENT),
        config / TERMS: job.canonical() + "\n",
        Path("policy", "authorization.json"): _text(AUTHORIZATION),
        Path("policy", "resources.json"): _text(RESOURCES),
        Path("README.txt"): _README.format(
            run=job.run, parties=", ".join(job.parties), owner=owner
        ),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def _meta(job: Job) -> dict[str, Any]:
    return {
        "name": job.run,
        "deploy_map": {"app": ["server", *job.parties]},
        "resource_spec": {},
        "min_clients": len(job.parties),
        "mandatory_clients": list(job.parties),
    }


def _server(reply_timeout: float, *, dry: bool) -> dict[str, Any]:
    return {
        "format_version": 2,
        "server": {"task_request_interval": 0.01},
        "dead_client_grace_period": 1.0,
        "dead_client_check_lead_time": 1.0,
        "end_run_readiness_timeout": 1.0,
        "components": [],
        "workflows": [
            {
                "id": "coordinator",
                "path": CONTROLLER,
                "args": {"reply_timeout": reply_timeout, "dry": dry},
            }
        ],
    }


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"
