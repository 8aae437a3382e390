"""The commands of a submission session (RFC 5321, 6409, 4954, 3207): what each needs, and what it answers.

Who may send, to whom and what is not decided here: the author comes from `login`, a recipient is looked at through
`intake.glance`, the whole mail goes to the intake through `submission`.
"""

import asyncio
import logging
import re

from gateway.core.address import AddressError
from gateway.core.dsn import Dsn
from gateway.core.mail import Recipient
from gateway.doors.fields import Reader
from gateway.doors.refusal import Refusal
from gateway.doors.smtp import login, paths, replies
from gateway.doors.smtp.house import House
from gateway.doors.smtp.lines import Gone, Malformed
from gateway.doors.smtp.login import Author
from gateway.doors.smtp.submission import Trace, Transaction, hand_in
from gateway.doors.smtp.talk import Talk
from gateway.store.agents import Mailbox

log = logging.getLogger(__name__)

_CLIENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9_])?|\[[A-Za-z0-9:.]{2,64}\]")

NEEDS_TLS = "538 5.7.11 STARTTLS is needed first"
NOT_IN = "535 5.7.8 the login is not valid"


class Session(Talk):
    """One client that submits; `mail` is the transaction that is open, `author` who is logged in.

    `_excused` is set once MAIL or RCPT may have been refused to a client that has already sent what follows it.
    """

    def __init__(self, house: House, loop: asyncio.AbstractEventLoop, address: str, refusal: str = "") -> None:
        super().__init__(house, loop, address, refusal)
        self.client = ""
        self.extended = False
        self.logged_in = False
        self.author: Author | None = None
        self.mail: Transaction | None = None
        self._excused = False
        self._failures = 0

    @property
    def trusted(self) -> str:
        """The agent whom the client's network stands for, or nothing."""
        return self.house.trusted(self.address)

    # --- the session ---

    async def smtp_EHLO(self, arg: str) -> None:
        """Greet and say what is offered."""
        self._greet(arg, extended=True)
        offers = [self.hostname, f"SIZE {self.house.limits.message_bytes}", "8BITMIME", "SMTPUTF8", "PIPELINING"]
        offers += ["ENHANCEDSTATUSCODES", "DSN"]
        if self.house.tls is not None and not self.secure:
            offers.append("STARTTLS")
        if (self.secure or self.trusted) and not self.logged_in:
            offers.append("AUTH PLAIN LOGIN")
        await self.push([f"250 {offer}" for offer in offers])

    async def smtp_HELO(self, arg: str) -> None:
        """Greet."""
        self._greet(arg, extended=False)
        await self.push(f"250 {self.hostname}")

    def _greet(self, name: str, *, extended: bool) -> None:
        if not name or len(name) > 255 or not name.isascii() or not name.isprintable() or " " in name:  # noqa: PLR2004
            raise Malformed("501 5.5.4", "should be followed by a host name")
        self.client = name
        self.extended = extended
        self.mail, self._excused = None, False

    async def smtp_STARTTLS(self, arg: str) -> None:
        """Go over to TLS; nothing that was said before counts (RFC 3207 4.2)."""
        if arg:
            raise Malformed("501 5.5.4", "takes no argument")
        if self.secure:
            raise Malformed("503 5.5.1", "TLS is spoken already")
        if self.house.tls is None:
            raise Malformed("454 4.7.0", "TLS is not available")
        if self.lines.pending:
            log.warning("smtp.injected", extra={"client": self.address})
            self.hang_up("554 5.5.1 nothing may follow STARTTLS before its reply")
            raise Gone
        await self.push("220 2.0.0 go on")
        await self.upgrade()
        self.client, self.extended, self.mail = "", False, None
        self.author, self.logged_in = None, False

    async def smtp_AUTH(self, arg: str) -> None:
        """Log in with PLAIN or LOGIN: the agent's name or the key's prefix, and the key."""
        if not self.extended or self.logged_in or self.mail is not None:
            raise Malformed("503 5.5.1", "not now: it comes once, after EHLO and before MAIL")
        if not (self.secure or self.trusted):
            raise Malformed(NEEDS_TLS[:10], NEEDS_TLS[11:])
        mechanism, _, initial = arg.partition(" ")
        initial = initial.strip()
        if mechanism.upper() == "PLAIN":
            message = login.decoded(initial or await self.ask("")) if initial != "=" else b""
            name, key = login.plain(message)
        elif mechanism.upper() == "LOGIN":
            name = login.text(login.decoded(initial or await self.ask("VXNlcm5hbWU6")))
            key = login.text(login.decoded(await self.ask("UGFzc3dvcmQ6")))
        else:
            raise Malformed("504 5.5.4", "PLAIN and LOGIN are known here")
        await self._log_in(name, key)

    async def _log_in(self, name: str, key: str) -> None:
        """Answer a login, whatever was wrong with it in the same words; failures take longer and longer."""
        lockout, address = self.house.lockout, self.address
        if lockout.locked(address, name):
            log.warning("smtp.locked_out", extra={"client": address})
            self.hang_up("421 4.7.0 too many failed logins; try again later")
            raise Gone
        author = await login.log_in(self.house.context, name, key)
        if author is None:
            log.warning("smtp.login_failed", extra={"client": address})
            await asyncio.sleep(lockout.failed(address, name))
            self._failures += 1
            if self._failures >= self.house.limits.logins:
                self.hang_up("421 4.7.0 too many failed logins")
                raise Gone
            await self.push(NOT_IN)
            return
        lockout.passed(address, name)
        self.author, self.logged_in = author, True
        await self.push("235 2.7.0 welcome")

    async def smtp_NOOP(self, arg: str) -> None:  # noqa: ARG002  (it may be followed by anything)
        """Do nothing."""
        await self.push("250 2.0.0 ok")

    async def smtp_RSET(self, arg: str) -> None:
        """Forget the mail that was begun."""
        if arg:
            raise Malformed("501 5.5.4", "takes no argument")
        self.mail, self._excused = None, False
        await self.push("250 2.0.0 ok")

    async def smtp_QUIT(self, arg: str) -> None:
        """Say goodbye."""
        if arg:
            raise Malformed("501 5.5.4", "takes no argument")
        self.hang_up("221 2.0.0 bye")

    async def smtp_VRFY(self, arg: str) -> None:
        """Tell nothing about anybody (RFC 5321 7.3)."""
        if not arg:
            raise Malformed("501 5.5.4", "should be followed by an address")
        await self.push("252 2.5.2 send some mail, and see")

    async def smtp_EXPN(self, arg: str) -> None:  # noqa: ARG002  (whatever it is)
        """Know no lists."""
        raise Malformed("502 5.5.1", "there are no lists here")

    async def smtp_HELP(self, arg: str) -> None:  # noqa: ARG002  (whatever it is)
        """Point at the standard."""
        await self.push("214 2.0.0 mail submission by RFC 6409")

    # --- a mail ---

    async def smtp_MAIL(self, arg: str) -> None:
        """Begin a mail from one of the author's own mailboxes."""
        if not self.client:
            raise Malformed("503 5.5.1", "EHLO comes first")
        if self.mail is not None:
            raise Malformed("503 5.5.1", "a mail has been begun; RSET takes it back")
        if self.author is None and not self.trusted:
            raise Malformed(
                "530 5.7.0", "a login is needed first" if self.secure else "STARTTLS and a login are needed first"
            )
        self._excused = True
        path = paths.read("FROM", arg)
        if path.parameters and not self.extended:
            raise Malformed("555 5.5.4", "parameters need EHLO")
        eight_bit, smtputf8 = paths.eight_bit(path), paths.without_value(path, "SMTPUTF8")
        path.take("AUTH")  # whom somebody else believes (RFC 4954 5) changes nothing here
        ret, envid = paths.of_mail(path)
        size = paths.size(path)
        path.all_taken()
        if not path.address.isascii() and not smtputf8:
            raise Malformed("553 5.6.7", "an address beyond ASCII needs SMTPUTF8")
        if size > self.house.limits.message_bytes:
            limit = self.house.limits.message_bytes
            await self.push(f"552 5.3.4 message_too_large; limit={limit}; size={size}; make it smaller")
            return
        try:
            self.author = await self._author()
            reader = self._reads_for(self.author)
            box = _own(path.address, self.author, reader)
            self.mail = Transaction(self.author, box, reader, eight_bit, smtputf8, ret, envid)
        except Refusal as refusal:
            await self.push(replies.not_taken(refusal))
            return
        self._excused = False
        await self.push("250 2.1.0 ok")

    async def _in_vain(self, reply: str) -> None:
        """Refuse RCPT or DATA. Behind a refusal they are no fault: who pipelines has not heard it yet (RFC 2920 3.1)."""
        await (self.push if self._excused else self.fault)(reply)

    async def _author(self) -> Author:
        """Who sends, as he stands now. Raises Refusal, StoreUnavailableError."""
        context = self.house.context
        if self.author is None:
            return await login.of_network(context, self.trusted)
        return await login.still(context, self.author)

    def _reads_for(self, author: Author) -> Reader:
        context, tenancy = self.house.context, author.grant.tenancy
        now = context.store.about_now(author.grant.tenant)
        return Reader(tenancy.rules, context.settings.special_use, tenancy.own_domains, now)

    async def smtp_RCPT(self, arg: str) -> None:
        """Add a recipient, unless the address, its suppression or the number of them says no."""
        mail = self.mail
        if mail is None:
            await self._in_vain("503 5.5.1 MAIL comes first")
            return
        self._excused = True
        path = paths.read("TO", arg)
        notify, orcpt = paths.of_rcpt(path)
        path.all_taken()
        if not path.address.isascii() and not mail.smtputf8:
            raise Malformed("553 5.6.7", "an address beyond ASCII needs SMTPUTF8")
        try:
            address = mail.reader.person(path.address)
        except AddressError as error:
            await self.push(f"550 5.1.3 recipient_not_allowed; {error.why}; fix")
            return
        mail.offered[address.key] = None
        if len(mail.offered) > len(mail.taken) + self.house.limits.offered:
            self.hang_up("421 4.5.3 too many recipients")
            raise Gone
        if address.key not in mail.taken:
            if len(mail.taken) >= self.house.glance.most:
                await self.push(
                    "452 4.5.3 recipient_not_allowed; too many recipients; send the rest in a mail of its own"
                )
                return
            found = await self.house.glance.look(mail.probe(address))
            if not found.allow:
                await self.push(replies.decided(found))
                return
            mail.taken[address.key] = Recipient(address, dsn=Dsn(mail.ret, mail.envid, notify, orcpt))
        await self.push("250 2.1.5 ok")

    async def smtp_DATA(self, arg: str) -> None:
        """Take the mail's content, hand it in and say what was decided."""
        mail, limits = self.mail, self.house.limits
        if mail is None:
            await self._in_vain("503 5.5.1 MAIL comes first")
            return
        if arg:
            raise Malformed("501 5.5.4", "takes no argument")
        if not mail.taken:
            await self._in_vain("554 5.5.1 there is no recipient")
            return
        until = self.loop.time() + limits.idle_seconds + limits.message_bytes / limits.least_rate

        def progress(kept: int) -> None:
            self.take_time(min(limits.idle_seconds, max(until - self.loop.time(), 0.001)))
            if not self.house.hold(self, kept):
                self.hang_up("421 4.3.2 too much mail at once; try again later")
                raise Gone

        self.mail, self._excused = None, False
        try:
            progress(0)
            await self.push("354 end with CRLF dot CRLF")
            raw = await self.lines.body(limits.message_bytes, progress)
            self.take_time(limits.work_seconds)
            reply = await hand_in(self.house.context, mail, raw, self._trace(mail))
        finally:
            self.house.let_go(self)
        await self.push(reply)

    def _trace(self, mail: Transaction) -> Trace:
        client = self.client if _CLIENT.fullmatch(self.client) else "unknown"
        kind = ("UTF8SMTP" if mail.smtputf8 else "ESMTP") if self.extended else "SMTP"
        suffix = ("S" if self.secure else "") + ("A" if self.logged_in else "")
        return Trace(client, self.address, kind + (suffix if self.extended else ""))


def _own(path: str, author: Author, reader: Reader) -> Mailbox:
    """The mailbox that a reverse-path names. Raises Refusal: it must be one that the author may send from."""
    try:
        key = reader.sender(path).key
    except AddressError:
        key = ""
    for box in author.grant.tenancy.mailboxes:
        if box.key == key and author.grant.covers(box.id):
            return box
    raise Refusal(403, "sender_not_allowed", "field=MAIL FROM; it must be your own mailbox; use your own mailbox")
