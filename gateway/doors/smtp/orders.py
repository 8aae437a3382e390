"""What a mail asks of the gateway in its X-Gateway-* headers: the same members as a request over HTTP has, read alike.

The headers are read here and never relayed (core/rawmime takes them out). A name that is not among them is left to the
judge, who refuses it: it is forged or a slip.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from gateway.core.address import Address, AddressError
from gateway.core.mail import Recipient
from gateway.core.readmime import Parsed
from gateway.doors.asked import SendRequest
from gateway.doors.fields import TOKEN_MAX, Reader
from gateway.doors.refusal import Faults

PREFIX = "x-gateway-"
MEMBERS = {
    "idempotency-key": "idempotencyKey",
    "kind": "kind",
    "campaign-action": "campaignAction",
    "not-before": "scheduledAt",
    "require-consensus-id": "requireConsensusId",
}
"""Headers, without their prefix, that are members of a request."""
OTHERS = ("fencing-token", "agent", "dry-run")
KNOWN = frozenset({*MEMBERS, *OTHERS})
SWITCH = {"true": True, "false": False}

_TOKEN = re.compile(r"\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Orders:
    """The request that the headers make, without sender, recipients and message; who is to act, and the tokens as given."""

    asked: SendRequest
    agent: str | None
    token: str | None
    dry_run: bool


def title(name: str) -> str:
    """A header by the name that people write."""
    return f"X-Gateway-{name.title()}"


def read(said: Parsed, reader: Reader) -> Orders:
    """What the headers ask for. Raises Faults with each header that is wrong."""
    given: dict[str, str] = {}
    faults: list[tuple[str, str]] = []
    for header, value in said.headers:
        name = header.lower().removeprefix(PREFIX)
        if name not in KNOWN or not header.lower().startswith(PREFIX):
            continue
        value = value.replace("\t", " ").strip()  # noqa: PLW2901  (a folded line may begin with either blank)
        if given.setdefault(name, value) != value:
            faults.append((title(name), "stands twice and differs"))
    key = given.get("idempotency-key", "")
    if len(key) > 1 and key.startswith('"') and key.endswith('"'):
        given["idempotency-key"] = key[1:-1]
    if given.get("dry-run", "false").lower() not in SWITCH:
        faults.append((title("dry-run"), "must be true or false"))
    if "agent" in given and not given["agent"]:
        faults.append((title("agent"), "names nobody"))
    asked, wrong = _asked({MEMBERS[name]: value for name, value in given.items() if name in MEMBERS}, reader)
    faults += wrong
    if asked is None or faults:
        raise Faults(faults)
    dry_run = SWITCH[given.get("dry-run", "false").lower()]
    return Orders(asked, given.get("agent"), given.get("fencing-token"), dry_run)


def _asked(members: dict[str, str], reader: Reader) -> tuple[SendRequest | None, list[tuple[str, str]]]:
    """The request of these members, or what is wrong with them."""
    names = {member: name for name, member in MEMBERS.items()}
    try:
        return SendRequest.model_validate(members, context=reader), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        return None, [(title(names.get(str(one["loc"][0]), "")), one["msg"]) for one in details]


def obeyed(said: Parsed) -> Parsed:
    """The message without those traits that were orders."""
    left = tuple(name for name in said.traits.gateway_headers if name.removeprefix(PREFIX) not in KNOWN)
    if left == said.traits.gateway_headers:
        return said
    return replace(said, traits=replace(said.traits, gateway_headers=left))


def tokens(text: str | None, recipients: Sequence[Recipient], reader: Reader) -> dict[Address, int] | None:
    """Fencing tokens by address: one number for the only recipient (in To), or `address=number, ...`. Raises Faults."""
    if text is None:
        return None
    field, found = title("fencing-token"), dict[Address, int]()
    if _TOKEN.fullmatch(text):
        only = [r for r in recipients if r.role == "to"] if len(recipients) > 1 else list(recipients)
        if len(only) != 1:
            raise Faults([(field, "is for the only recipient in To; write address=token for several")])
        found[only[0].address] = int(text)
    else:
        for part in text.split(","):
            person, _, number = part.strip().rpartition("=")
            if _TOKEN.fullmatch(number) is None:
                raise Faults([(field, "must be one whole number, or address=number for each of several people")])
            try:
                twice = found.setdefault(reader.person(person), int(number)) != int(number)
            except AddressError as error:
                raise Faults([(field, error.why)]) from None
            if twice:
                raise Faults([(field, "has two tokens for one person")])
    if any(number > TOKEN_MAX for number in found.values()):
        raise Faults([(field, "is larger than any token")])
    return found
