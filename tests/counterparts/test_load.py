"""smtp-source with many sessions at once: what was accepted is judged, kept and relayed, each mail once."""

from pathlib import Path

from tests.counterparts.programs import SENDER, Sinking, needs, run
from tests.counterparts.stand import standing

MAILS, SESSIONS = 300, 20


@needs("smtp-source")
def test_each_mail_of_a_crowd_arrives_once(sqlite_url: str, tmp_path: Path) -> None:
    with Sinking() as sink:
        trust, smarthost = "127.0.0.0/8=crowd", f"smtp://127.0.0.1:{sink.port}"
        with standing(sqlite_url, tmp_path, smarthost, smtp_trust=trust) as stand:
            stand.agent("crowd")
            count = (f"-m{MAILS}", f"-s{SESSIONS}", "-l4096")
            people = ("-N", "-f", SENDER, "-t", "person@example.net")
            done = run("smtp-source", *count, *people, f"127.0.0.1:{stand.port()}")
            assert done.returncode == 0, done.stderr
            sink.until(lambda: sink.sink.box.taken >= MAILS)
            assert stand.served.stop() == 0

        people_of = [mail.recipients[0] for mail in sink.sink.mails]
        assert len(people_of) == len(set(people_of)) == MAILS
        assert all(person.endswith("person@example.net") for person in people_of)
        assert min(len(mail.content) for mail in sink.sink.mails) > 4096
