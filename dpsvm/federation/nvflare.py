"""NVIDIA FLARE moves the messages of a run between organisations, over mutual TLS.

:class:`CoordinatorController` runs in the server's process of a job, :class:`PartyExecutor` in
that of every site. They move bytes and decide nothing: what is asked and answered is up to
:class:`Coordinator` and :class:`Party`, which are made of the terms in the job and of the site's
own file. A job cannot name that file: ``local/dpsvm.toml`` of the startup kit does, with

    site = "/folder/of/the/site/site.toml"

or the environment variable DPSVM_SITE of the process. Party names are NVIDIA FLARE's site names.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import Task
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.widgets.info_collector import InfoCollector

from dpsvm.federation.config import SiteConfig
from dpsvm.federation.in_process import run_turns
from dpsvm.federation.job import Job, check_keys, read_toml, told_where
from dpsvm.federation.messages import Message, decoded_answer, refused_bytes
from dpsvm.federation.nvflare_export import POINTER, STATS, TASK, TERMS
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import StoreError, told_of
from dpsvm.federation.turn import Turn

_MESSAGE = "message"  # the key of the bytes
_LOOK = 0.2  # seconds between looks at what does not wake us


class CoordinatorController(Controller):  # type: ignore[misc]
    """The coordinator.

    Into the folder of the job go outcome.json, how it ended; result.json, if it is done; and
    deliveries.jsonl, a line for every delivery: its round, the second at which all answers were
    there, and the digest of each. They come with the job's result when it is downloaded.

    reply_timeout : seconds that a party has for an answer
    dry : greet and rehearse only
    """

    def __init__(self, reply_timeout: float = 600.0, dry: bool = False) -> None:
        super().__init__()
        self.reply_timeout, self.dry = reply_timeout, dry
        self._news = threading.Condition()
        self._lost: set[str] = set()  # parties that are not asked any more
        self._asked: tuple[int, set[str], float] = (-1, set(), time.monotonic())

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing is begun before the job is."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """The run lets go of what it has by itself."""

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Any, fl_ctx: Any
    ) -> None:
        """An answer that came too late: the party gives it again when the run is resumed."""
        self.log_warning(fl_ctx, f"{client.name} answered too late")

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """A party that is gone is not waited for; an admin is told who is."""
        if event_type == EventType.CLIENT_DISCONNECTED:
            with self._news:
                self._lost.add(fl_ctx.get_prop(FLContextKey.DISCONNECTED_CLIENT_NAME))
                self._news.notify_all()
        elif event_type == InfoCollector.EVENT_TYPE_GET_STATS:
            collector = fl_ctx.get_prop(InfoCollector.CTX_KEY_STATS_COLLECTOR)
            number, awaited, since = self._asked
            asked = [number, sorted(awaited), time.monotonic() - since]
            collector.add_info(STATS, {"asked": asked})

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Run to the end, or to what stops it."""
        folder = Path(_workspace(fl_ctx).get_run_dir(fl_ctx.get_job_id()))
        deliver = partial(self._deliver, folder / "deliveries.jsonl", abort_signal, fl_ctx)
        turn, result = self._run(deliver, fl_ctx)
        if result is not None:
            (folder / "result.json").write_text(result, encoding="utf-8")
        told = [message.text("reason") for message in turn.messages.values()]
        reason = told[0] if told else turn.reason
        if reason != turn.reason:
            print(turn.reason, file=sys.stderr, flush=True)  # see _run
        outcome = {"ended": turn.ended, "reason": reason}
        (folder / "outcome.json").write_text(json.dumps(outcome) + "\n", encoding="utf-8")
        if turn.ended == "stopped":
            self.system_panic(reason, fl_ctx)

    def _run(self, deliver: Callable[..., Any], fl_ctx: Any) -> tuple[Turn, str | None]:
        try:
            coordinator = _site(fl_ctx).coordinator(_terms(fl_ctx), dry=self.dry)
        except (ValueError, OSError) as error:
            traceback.print_exc()  # to the server's screen: the job's own log is downloaded
            return Turn({}, ended="stopped", reason=_told(error, "the coordinator")), None
        try:
            turn = run_turns(
                coordinator, deliver, lambda metrics: self.log_info(fl_ctx, json.dumps(metrics))
            )
            done = turn.ended == "done"
            return turn, coordinator.store.read("result.json") if done else None
        finally:
            coordinator.store.close()

    def _deliver(
        self, log: Path, abort_signal: Any, fl_ctx: Any, messages: Mapping[str, Message]
    ) -> dict[str, Message | None]:
        """The answer of every party to its message; None of one that is gone, or late."""
        answers: dict[str, bytes] = {}
        tasks = {
            name: self._sent(name, message.encode(), answers, fl_ctx)
            for name, message in messages.items()
            if name not in self._lost
        }
        began = time.monotonic()
        end, number = began + self.reply_timeout, next(iter(messages.values())).round
        with self._news:
            while late := set(messages) - set(answers) - self._lost:
                self._asked = number, late, began
                if abort_signal.triggered or time.monotonic() >= end:
                    self._lost |= late
                else:
                    self._news.wait(_LOOK)
            got = dict(answers)
        for name in set(tasks) - set(got):
            self.cancel_task(tasks[name], fl_ctx=fl_ctx)
        _note(log, messages, got)
        return {
            name: decoded_answer(got[name], message) if name in got else None
            for name, message in messages.items()
        }

    def _sent(self, name: str, data: bytes, answers: dict[str, bytes], fl_ctx: Any) -> Any:
        task = Task(
            name=TASK,
            data=Shareable({_MESSAGE: data}),
            result_received_cb=partial(self._received, answers),
        )
        self.send(task, fl_ctx, targets=[name])
        return task

    def _received(self, answers: dict[str, bytes], client_task: Any, fl_ctx: Any) -> None:
        name, result = client_task.client.name, client_task.result
        client_task.result = None
        data = result.get(_MESSAGE)
        with self._news:
            if result.get_return_code() == ReturnCode.OK and isinstance(data, bytes):
                answers[name] = data
            else:
                self._lost.add(name)
            self._news.notify_all()


class PartyExecutor(Executor):  # type: ignore[misc]
    """A party, from the first message of a job to the job's end.

    What it cannot answer it refuses, with a reason that names no files of the site; the reason in
    full stands in the log of the site.
    """

    def __init__(self) -> None:
        super().__init__()
        self._party: Party | None = None
        self._busy = threading.Lock()  # the run is not let go of while an answer is made

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Let go of the run when the job ends."""
        if event_type == EventType.END_RUN:
            with self._busy:
                self._close()

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """The bytes of the answer to the bytes of a message."""
        data = shareable.get(_MESSAGE)
        if task_name != TASK or not isinstance(data, bytes):
            return make_reply(ReturnCode.BAD_TASK_DATA)
        with self._busy:
            return Shareable({_MESSAGE: self._answer(data, fl_ctx)})

    def _answer(self, data: bytes, fl_ctx: Any) -> bytes:
        name = fl_ctx.get_identity_name()
        try:
            if self._party is None:
                config = _site(fl_ctx)
                if config.name != name:
                    raise Refusal(f"{name} was given the file of {config.name}")
                self._party = config.party(_terms(fl_ctx))
            answer = self._party.handle_bytes(data)
        except Exception as error:
            self.log_exception(fl_ctx, f"{name} refuses: {error}")
            self._close()
            return refused_bytes(data, _told(error, name))
        if self._party.refused is not None:
            self.log_error(fl_ctx, f"{name} refuses: {self._party.refused}")
        if self._party.stopped is not None:
            self.log_error(fl_ctx, f"the run was stopped: {self._party.stopped}")
        return answer

    def _close(self) -> None:
        if self._party is not None:
            self._party.store.close()
            self._party = None


def site_file(local: Path) -> Path:
    """The file of a site: what the environment says, or the pointer in a folder of its kit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "dpsvm.toml").write_text('site = "/srv/lab/site.toml"')
    ...     print(site_file(Path(folder)))
    /srv/lab/site.toml
    """
    named = os.environ.get("DPSVM_SITE")
    if named:
        return Path(named)
    content = read_toml(local / POINTER)
    with told_where(str(local / POINTER)):
        check_keys(content, {"site"}, {"site"})
        if not isinstance(content["site"], str):
            raise ValueError(f"site must be a path, got {content['site']!r}")
        return local / content["site"]


def _workspace(fl_ctx: Any) -> Any:
    return fl_ctx.get_engine().get_workspace()


def _site(fl_ctx: Any) -> SiteConfig:
    return SiteConfig.load(site_file(Path(_workspace(fl_ctx).get_site_config_dir())))


def _terms(fl_ctx: Any) -> Job:
    path = Path(_workspace(fl_ctx).get_app_config_dir(fl_ctx.get_job_id()), TERMS)
    return Job.of(json.loads(path.read_text(encoding="utf-8")), TERMS)


def _told(error: Exception, name: str) -> str:
    """What others may know of an error at a site: nothing of its files."""
    if not isinstance(error, (Refusal, StoreError)):
        return f"{name} cannot take part: its own log says why"
    return told_of(error)


def _note(log: Path, messages: Mapping[str, Message], answers: Mapping[str, bytes]) -> None:
    """Add a line on a delivery."""
    line = {
        "round": next(iter(messages.values())).round,
        "at": time.monotonic(),
        "answers": {
            name: hashlib.sha256(answers[name]).hexdigest() for name in messages if name in answers
        },
    }
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
