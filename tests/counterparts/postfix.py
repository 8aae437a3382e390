"""A private Postfix: own configuration, queue and data in a folder of its own, listening on one free port of the loopback.

It has nothing to do with the system's instance, and needs root as every Postfix does. A small shell minds it: when the
shell's standard input closes, because we are done or were killed, it ends the master by the pid in its own queue.
"""

import contextlib
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.counterparts.programs import SENDER, path_of, run
from tests.servers import PATIENCE, environment

MINDER = """
folder=$1; shift
"$@" </dev/null &
read -r nothing
kill -0 $! 2>/dev/null && kill "$(tr -d ' ' <"$folder/queue/pid/master.pid")"
wait
rm -rf "$folder"
"""

MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = /dev/stdout
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = {name}
mydestination =
mynetworks = 127.0.0.0/8
local_recipient_maps =
alias_maps =
disable_dns_lookups = yes
smtp_host_lookup = native
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
import_environment = MAIL_CONFIG MAIL_DEBUG MAIL_LOGTAG TZ LANG=C POSTLOG_SERVICE POSTLOG_HOSTNAME
"""

MASTER = """
127.0.0.1:{port} inet n - n - - smtpd
pickup  unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr    unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce  unix - - n - 0 bounce
defer   unix - - n - 0 bounce
trace   unix - - n - 0 bounce
verify  unix - - n - 1 verify
flush   unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
tlsmgr  unix - - n 1000? 1 tlsmgr
tlsproxy unix - - n - 0 tlsproxy
smtp    unix - - n - - smtp
clear   unix - - n - - smtp
  -o smtp_tls_security_level=none -o smtp_sasl_auth_enable=no
showq   unix n - n - - showq
error   unix - - n - - error
retry   unix - - n - - error
discard unix - - n - - discard
anvil   unix - - n - 1 anvil
scache  unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""
"""The services that Postfix needs, none in a chroot; `clear` speaks without TLS and login to whom a table names for it."""

DOCS = (Path(__file__).parent.parent.parent / "docs" / "smtp.md").read_text(encoding="utf-8")

Files = Mapping[str, str | bytes]
"""Files beside main.cf by their names; in texts, as in settings, `{etc}` is the folder that they lie in."""


@dataclass(eq=False)
class Postfix:
    """A Postfix that runs; `lines` is its log so far."""

    folder: Path
    port: int
    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False
    _reader: threading.Thread | None = None

    def read_log(self) -> None:
        """Collect the log until all of its processes have ended (run in a thread)."""
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def wait_for(self, pattern: str) -> str:
        """The first line of the log, past or future, in which the pattern is found."""

        def found() -> list[str]:
            return [line for line in self.lines if re.search(pattern, line)]

        with self._news:
            self._news.wait_for(lambda: found() or self._ended, PATIENCE)
            assert found(), f"no {pattern!r} in:\n" + "\n".join(self.lines[-60:])
            return found()[0]

    def greeted(self) -> None:
        """Return once it greets who connects; AssertionError where it does not."""
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as line:
                if line.recv(4) == b"220 ":
                    return
            assert not self._ended, "\n".join(self.lines)
            assert time.monotonic() < until
            time.sleep(0.02)

    def fate_of(self, person: str) -> str:
        """The log's first line about what became of mail for this person: `status=sent`, `bounced` or `deferred`."""
        return self.wait_for(rf" to=<{re.escape(person)}>.* status=")

    def sendmail(self, message: bytes, *words: str) -> None:
        """Hand in a mail as programs of the machine do; words are options, `--` and recipients."""
        done = run("sendmail", "-C", str(self.folder / "etc"), "-i", "-f", SENDER, *words, given=message)
        assert done.returncode == 0, done.stderr

    def queue(self) -> list[dict[str, Any]]:
        """What waits in the queue, as `postqueue -j` tells it."""
        done = run("postqueue", "-c", str(self.folder / "etc"), "-j")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def flush(self) -> None:
        """Try again now what waits."""
        done = run("postqueue", "-c", str(self.folder / "etc"), "-f")
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        """End it, and wait until the last of its processes has gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        assert self._reader is not None
        self._reader.join(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


def documented(where: str) -> list[str]:
    """The lines of main.cf that docs/smtp.md gives for a Postfix `in front` or `behind`, for this folder of configuration."""
    (block,) = re.findall(rf"^```cfg\n# main\.cf, {where}\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    return [line.replace("/etc/postfix", "{etc}") for line in block.splitlines()]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def open_folder() -> Path:
    """A new folder that Postfix's own user can reach, with what it wants to find there."""
    folder = Path(tempfile.mkdtemp(prefix="gateway-postfix-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("etc", "queue", "data"):
        (folder / name).mkdir(mode=0o755)
    os.chown(folder / "data", pwd.getpwnam("postfix").pw_uid, -1)
    return folder


def start(name: str, settings: Sequence[str], files: Files, port: int) -> Postfix:
    """Start a Postfix that calls itself `name`, with these lines in main.cf and these files beside it.

    It is ready once it greets; with `maillog_file =` among the settings it keeps no log.
    """
    folder = open_folder()
    etc = folder / "etc"
    lines = [*MAIN.format(folder=folder, name=name).strip().splitlines(), *settings]
    values = dict(line.split(" =", 1) for line in lines)  # what is set later counts
    main = "".join(f"{name} ={value}\n" for name, value in values.items())
    for file, content in {"main.cf": main, "master.cf": MASTER.format(port=port), **files}.items():
        text = content.replace("{etc}", str(etc)).encode() if isinstance(content, str) else content
        (etc / file).parent.mkdir(exist_ok=True)
        (etc / file).write_bytes(text)
        (etc / file).chmod(0o644)
    process = subprocess.Popen(
        ["/bin/sh", "-c", MINDER, "minder", folder, path_of("postfix") or "postfix", "-c", etc, "start-fg"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,  # Ctrl-C is for the tests; it leaves after them
    )
    one = Postfix(folder, port, process)
    one._reader = threading.Thread(target=one.read_log, daemon=True)
    one._reader.start()
    try:
        one.greeted()
    except BaseException:
        one.stop()
        raise
    return one


@contextlib.contextmanager
def running(name: str, *settings: str, files: Files | None = None) -> Iterator[Postfix]:
    """As `start`, on a free port, and ended when the block ends."""
    one = start(name, settings, files or {}, free_port())
    try:
        yield one
    finally:
        one.stop()
