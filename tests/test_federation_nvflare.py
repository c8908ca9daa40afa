"""The NVIDIA FLARE runner: a real run over mutual TLS, the job folder, and what a site tells."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches import report_of

from bench.federation.sites import approve_all
from dpsvm.federation import (
    Coordinator,
    InProcessRunner,
    Job,
    MemoryStore,
    Message,
    Party,
    Site,
)
from dpsvm.federation.nvflare_export import CONTROLLER, EXECUTOR, TASK, export

JOB = Job("heart-1", "sharing", ("clinic", "lab"), "clinic", {"rounds": 3}, ids=False)
GREET = {"version": 2, "job": JOB.digest}

there = find_spec("nvflare") is not None
nvflare: Any = import_module("dpsvm.federation.nvflare") if there else None
needs_nvflare = pytest.mark.skipif(not there, reason="nvflare is not installed")


def contents(folder: Path) -> dict[str, str]:
    """All files below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def test_an_exported_job_names_two_classes_and_ships_no_code(tmp_path: Path) -> None:
    written = export(JOB, tmp_path / "out")
    files = contents(tmp_path / "out")
    assert {str(path.relative_to(tmp_path / "out")) for path in written} == set(files)
    assert set(files) == {
        "README.txt",
        "job/meta.json",
        "job/app/config/config_fed_server.json",
        "job/app/config/config_fed_client.json",
        "job/app/config/job.json",
        "policy/authorization.json",
        "policy/resources.json",
    }
    read = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    server, client = (read[f"job/app/config/config_fed_{end}.json"] for end in ("server", "client"))
    assert [one["path"] for one in server["workflows"]] == [CONTROLLER]
    assert [one["executor"]["path"] for one in client["executors"]] == [EXECUTOR]
    assert server["components"] == client["components"] == []
    assert read["job/meta.json"]["deploy_map"] == {"app": ["server", "clinic", "lab"]}
    assert read["job/meta.json"]["mandatory_clients"] == ["clinic", "lab"]
    assert Job.of(read["job/app/config/job.json"]).digest == JOB.digest
    assert read["policy/resources.json"]["class_allow_list"] == [CONTROLLER, EXECUTOR]
    assert read["policy/resources.json"]["class_list_enforcement_mode"] == "enforce"
    [rights] = read["policy/authorization.json"]["permissions"].values()
    assert rights["byoc"] == "none"


def test_export_leaves_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(ValueError, match="not an empty folder"):
        export(JOB, tmp_path)
    with pytest.raises(ValueError, match="not an empty folder"):
        export(JOB, tmp_path / "mine")
    assert contents(tmp_path) == {"mine": "kept"}


def test_no_party_can_be_called_server(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no party can have this name"):
        export(Job("r", "sharing", ("server",), "server"), tmp_path / "out")


class FullDisk(MemoryStore):
    """A store that keeps nothing."""

    def save(self, snapshot: Any, phase: Any = None) -> None:
        raise OSError(28, "No space left on device", "/srv/clinic/state/snapshot")


def test_a_coordinator_tells_the_parties_nothing_of_its_files() -> None:
    owner = Site("clinic", labels=np.array([-1, 1]))
    parties = [Party(JOB, Site(name, np.eye(2)), MemoryStore()) for name in JOB.parties]
    turn = InProcessRunner(parties).run(Coordinator(JOB, owner, FullDisk()))
    assert turn.ended == "stopped"
    assert "/srv/clinic/state/snapshot" in str(turn.reason)
    told = "the coordinator cannot read or write its files"
    assert [party.stopped for party in parties] == [told, told]


class Place:
    """The context of a job at a site, as far as the executor looks at it."""

    def __init__(self, folder: Path, name: str = "lab") -> None:
        from nvflare.apis.fl_context import FLContext

        self.folder, self.name = folder, name
        export(JOB, folder / "exported")
        (folder / "local").mkdir()
        (folder / "local" / "dpsvm.toml").write_text('site = "../site.toml"')
        (folder / "site.toml").write_text(
            'name = "lab"\nstate = "state"\nallow = "not private"\n[data]\nfile = "lab.csv"\n'
            '[consent]\napprover = "approver.pub"\n[budget]\nledger = "ledger.json"\n'
        )
        approve_all(JOB, [folder / "site.toml"])
        (folder / "lab.csv").write_text("crp\n0.5\n-0.5\n")
        context = FLContext()
        for method in ("get_engine", "get_workspace"):
            setattr(context, method, lambda: context)
        context.get_identity_name = lambda default="": name
        context.get_job_id = lambda default=None: "a-job"
        context.get_site_config_dir = lambda: str(folder / "local")
        context.get_app_config_dir = lambda _: str(folder / "exported" / "job" / "app" / "config")
        self.context, self.executor = context, nvflare.PartyExecutor()

    def ask(self, message: Message) -> Message:
        """The answer to a message."""
        from nvflare.apis.shareable import Shareable

        given = Shareable({"message": message.encode()})
        reply = self.executor.execute(TASK, given, self.context, None)
        return Message.decode(reply["message"])

    def greet(self) -> Message:
        """The answer to a greeting."""
        return self.ask(Message(JOB.run, -1, "greet", scalars=GREET))


def budget(folder: Path) -> None:
    """A ledger."""
    from dpsvm.privacy import BudgetAccountant

    BudgetAccountant(1.0, 1e-5, path=folder / "ledger.json", create=True)


@needs_nvflare
def test_a_party_answers_and_lets_go_of_the_run_at_the_end(tmp_path: Path) -> None:
    from nvflare.apis.event_type import EventType

    place = Place(tmp_path)
    budget(tmp_path)
    assert place.greet().kind == "hello"
    other = nvflare.PartyExecutor()
    mine, place.executor = place.executor, other
    held = place.greet()
    assert held.text("reason") == "another process has this run"
    mine.handle_event(EventType.END_RUN, place.context)
    assert place.greet().kind == "hello"
    other.handle_event(EventType.END_RUN, place.context)


@needs_nvflare
def test_what_is_wrong_at_a_site_is_told_without_its_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path)
    lost = place.greet()
    assert (lost.kind, lost.run, lost.round) == ("refusal", JOB.run, -1)
    assert lost.text("reason").startswith("no such ledger")
    assert str(tmp_path / "ledger.json") in caplog.text
    budget(tmp_path)
    (tmp_path / "lab.csv").write_text("crp\nsecret,1\n")
    assert place.greet().text("reason") == "lab cannot take part: its own log says why"
    assert "lab.csv: line 2: 2 fields" in caplog.text
    (tmp_path / "local" / "dpsvm.toml").unlink()
    assert place.greet().text("reason") == "lab cannot take part: its own log says why"


@needs_nvflare
def test_a_job_that_nobody_approved_is_refused_and_noted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    budget(tmp_path)
    for path in (tmp_path / "state" / "consents").iterdir():
        path.unlink()
    told = place.greet()
    assert told.kind == "refusal"
    assert told.text("reason") == "lab has not approved these terms of run heart-1"
    [line] = (tmp_path / "state" / "journal.jsonl").read_text().splitlines()
    assert "has not approved these terms" in json.loads(line)["refused"]
    assert not (tmp_path / "state" / "party").exists()


@needs_nvflare
def test_a_site_with_the_file_of_another_refuses(tmp_path: Path) -> None:
    assert Place(tmp_path, "clinic").greet().text("reason") == "clinic was given the file of lab"


@needs_nvflare
def test_a_task_that_is_no_message_is_not_answered(tmp_path: Path) -> None:
    from nvflare.apis.fl_constant import ReturnCode
    from nvflare.apis.shareable import Shareable

    place = Place(tmp_path)
    for task, content in (("train", {"message": b""}), (TASK, {"message": "text"}), (TASK, {})):
        reply = place.executor.execute(task, Shareable(content), place.context, None)
        assert reply.get_return_code() == ReturnCode.BAD_TASK_DATA


@needs_nvflare
def test_the_environment_names_the_site_before_the_kit_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pointer = tmp_path / "dpsvm.toml"
    pointer.write_text('site = "lab.toml"')
    assert nvflare.site_file(tmp_path) == tmp_path / "lab.toml"
    monkeypatch.setenv("DPSVM_SITE", "/srv/site.toml")
    assert nvflare.site_file(tmp_path) == Path("/srv/site.toml")
    monkeypatch.delenv("DPSVM_SITE")
    for text, told in (("site = 3", "must be a path"), ("name = 'lab'", "unknown key 'name'")):
        pointer.write_text(text)
        with pytest.raises(ValueError, match=told):
            nvflare.site_file(tmp_path)


class Signal:
    """An abort signal."""

    triggered = False


def controller(answers: dict[str, bytes | None], **options: Any) -> Any:
    """A controller whose parties answer with given bytes, or never."""
    from nvflare.apis.shareable import Shareable, make_reply

    found = nvflare.CoordinatorController(**options)
    found.cancelled = []

    def send(task: Any, context: Any, targets: list[str]) -> None:
        [name] = targets
        if name in answers:
            given = answers[name]
            reply = make_reply("EXECUTION_EXCEPTION") if given is None else Shareable()
            if given is not None:
                reply["message"] = given
            client = type("Client", (), {"name": name})
            task.result_received_cb(type("Done", (), {"client": client, "result": reply}), context)

    found.send = send
    found.cancel_task = lambda task, fl_ctx: found.cancelled.append(task)
    return found


@needs_nvflare
def test_a_delivery_names_who_did_not_answer(tmp_path: Path) -> None:
    asked = {name: Message("r", 2, "ask") for name in ("a", "b", "c", "d")}
    good = Message("r", 2, "ended").encode()
    one = controller({"a": good, "b": b"no message", "c": None}, reply_timeout=0.1)
    log = tmp_path / "log"
    found = one._deliver(log, Signal(), None, asked)
    assert found["a"].kind == "ended"
    assert "what is no message" in found["b"].text("reason")
    assert found["c"] is None
    assert found["d"] is None
    assert len(one.cancelled) == 2
    assert list(json.loads(log.read_text())["answers"]) == ["a", "b"]
    again = one._deliver(log, Signal(), None, asked)  # who was late is not asked again
    assert [again[name] is None for name in asked] == [False, False, True, True]


@needs_nvflare
def test_an_admin_is_told_who_is_awaited(tmp_path: Path) -> None:
    from nvflare.apis.fl_context import FLContext
    from nvflare.widgets.info_collector import GroupInfoCollector, InfoCollector

    one, told, context = controller({}, reply_timeout=0.1), GroupInfoCollector(), FLContext()
    one._deliver(tmp_path / "log", Signal(), None, {"b": Message("r", 4, "ask")})
    context.set_prop(InfoCollector.CTX_KEY_STATS_COLLECTOR, told, sticky=False)
    one.handle_event(InfoCollector.EVENT_TYPE_GET_STATS, context)
    number, awaited, seconds = told.info["dpsvm"]["asked"]
    assert (number, awaited) == (4, ["b"])
    assert seconds >= 0.1


@needs_nvflare
def test_an_aborted_job_waits_for_nobody(tmp_path: Path) -> None:
    signal = Signal()
    signal.triggered = True
    one = controller({}, reply_timeout=3600.0)
    found = one._deliver(tmp_path / "log", signal, None, {"a": Message("r", 2, "ask")})
    assert found == {"a": None}


@needs_nvflare
def test_a_run_over_mutual_tls_has_the_bytes_of_one_process() -> None:
    report = report_of("federation/federation_nvflare.py", "--quick")
    assert "same bytes as in-process: 1 of 1" in report
    if find_spec("private_set_intersection") is not None:
        assert re.search("every site keeps the ids that are common +54 of 60 +yes", report)
        assert re.search(r"sharing, aligned +\d+( +yes){4}", report)
    assert re.search("no process is left when the federation has stopped +0 left +yes", report)
