"""What the smarthost has seen: how many mails, to whom, and whether their parts are what was asked for."""

import re
from typing import Any

from tests.cases import wire
from tests.cases.expect import EXPECTATIONS, expects, rcpts
from tests.cases.play import Play
from tests.cases.words import Said

__all__ = ["EXPECTATIONS"]
ADDRESS = re.compile(r"\s*<[^>]*>$")


@expects
async def upstream_transactions(play: Play, wanted: int | list[int]) -> None:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    play.fault(len(play.mails) in allowed, f"{len(play.mails)} mails upstream, not {wanted}")


@expects
async def upstream_transactions_by_key(play: Play, wanted: dict[str, int]) -> None:
    for key, count in wanted.items():
        first = next(one for one in play.sends if one.key == key and one.accepted)
        play.fault(len(play.mails_of(first)) == count, f"{key}: {len(play.mails_of(first))} mails, not {count}")


@expects
async def upstream_data_phases(play: Play, count: int) -> None:
    play.fault(play.house.sink.dots == count, f"{play.house.sink.dots} bodies upstream, not {count}")


@expects
async def upstream_rcpts(play: Play, wanted: list[str]) -> None:
    found = sorted(address for mail in play.mails for address in mail.recipients)
    play.fault(found == sorted(wanted), f"mailed: {found}, not {wanted}")


@expects
async def upstream_rcpts_exclude(play: Play, wanted: list[str]) -> None:
    said = [line for line in play.house.sink.commands if any(address in line for address in wanted)]
    play.fault(not said, f"said upstream: {said}")


@expects
async def upstream_rcpt_count(play: Play, count: int) -> None:
    play.fault(len(rcpts(play)) == count, f"RCPT: {rcpts(play)}")


@expects
async def unique_recipients(play: Play, count: int) -> None:
    found = {address for mail in play.mails for address in mail.recipients}
    play.fault(len(found) == count, f"{len(found)} people were mailed, not {count}")


@expects
async def upstream_rcpts_of_transaction(play: Play, wanted: dict[str, list[str]]) -> None:
    for key, people in wanted.items():
        first = next(one for one in play.sends if one.key == key)
        found = [address for mail in play.mails_of(first) for address in mail.recipients]
        play.fault(found == people, f"{key} went to {found}, not {people}")


@expects
async def upstream_saw_command(play: Play, wanted: dict[str, int]) -> None:
    for verb, count in wanted.items():
        found = [line for line in play.house.sink.commands if line.upper().startswith(verb)]
        play.fault(len(found) == count, f"{len(found)} times {verb}, not {count}")


@expects
async def upstream_saw_param(play: Play, wanted: dict[str, int]) -> None:
    for word, count in wanted.items():
        found = [line for line in play.house.sink.commands if word in line.upper().split()[1:]]
        play.fault(len(found) == count, f"{len(found)} times {word}, not {count}")


@expects
async def received_text_lines(play: Play, wanted: list[str]) -> None:
    texts = [(wire.part(mail, "plain") or "").removesuffix("\n").split("\n") for mail in play.mails]
    play.fault(texts == [wanted], f"received {texts}, not {wanted}")


@expects
async def decoded_parts_equal_input(play: Play, _: object) -> None:
    for one in play.sends:
        for mail in play.mails_of(one):
            for member, kind in (("text", "plain"), ("html", "html")):
                asked = (one.asked or {}).get(member)
                if asked is not None:
                    same = wire.part(mail, kind) == asked.replace("\r\n", "\n")
                    play.fault(same, f"step {one.step}: the {member} is {wire.part(mail, kind)!r:.80}")


@expects
async def decoded_header_equals_input(play: Play, names: list[str]) -> None:
    for one in play.sends:
        for mail in play.mails_of(one):
            for name in names:
                asked, found = _header(one, name), wire.decoded(mail, name)
                play.fault(found == asked, f"step {one.step}: {name} is {found!r:.120}, not {asked!r:.120}")


def _header(one: Said, name: str) -> Any:  # noqa: ANN401  (JSON)
    """What was asked for as this header; of an address its display name."""
    asked = (one.asked or {}).get(name.lower(), "")
    if name != "From":
        return asked
    return ADDRESS.sub("", asked).strip('"') if "<" in asked else ""
