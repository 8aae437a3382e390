"""What the words of a case promise beyond the expectations of its index entry, looked at as well."""

from collections.abc import Awaitable, Callable

from tests.cases.play import Play

More = Callable[[Play], Awaitable[None]]
MORE: dict[str, More] = {}
FROM = 100
"""Numbers of the steps that are added here begin with this."""


def more(about: str) -> Callable[[More], More]:
    """Enter what is looked at beyond a case's entry."""

    def enter(look: More) -> More:
        MORE[about] = look
        return look

    return enter


@more("B44")
async def production_names_the_setting(play: Play) -> None:
    """The same mails where special-use domains are not let in: all but the first are refused, and told by which setting."""
    await play.house.down()
    house = play.house
    house.settings |= {"allow_special_use": ()}
    await house.up()
    first, *others = play.case.steps
    for step in others:
        body = {**step["json"], "idempotencyKey": f"{step['json']['idempotencyKey']}-again"}
        answer = await house.call("POST", step["path"], step["as"], json=body)
        refused = answer.status_code == 422 and "GATEWAY_ALLOW_SPECIAL_USE" in answer.text
        play.fault(refused, f"{step['json']['to']} in production: {answer.status_code} {answer.text[:200]}")
    again = await house.call("POST", first["path"], first["as"], json=first["json"])
    play.fault(again.status_code == 200, f"{first['json']['to']} in production: {again.text[:200]}")


@more("B58")
async def one_copy_each(play: Play) -> None:
    """Each mail once, the second on a connection of its own and without an attempt that failed."""
    play.fault([len(play.mails_of(one)) for one in play.sends] == [1, 1], "not one copy each")
    play.fault(play.house.sink.sessions == 2, f"{play.house.sink.sessions} connections")
    told = (await play.record(play.sends[1].body["requestId"]))["recipients"][0]
    play.fault(told["attempts"] == 1, f"{told['attempts']} attempts")


@more("B70")
async def how_keys_are_compared(play: Play) -> None:
    """The outcomes that the case wants documented."""
    spelling, foreign, case, blanks = play.sends[3:7]
    play.fault("replayed" in spelling.decisions, f"another spelling: {spelling.text[:200]}")
    play.fault(foreign.status == 403, f"another agent: {foreign.text[:200]}")
    play.fault("replayed" not in case.decisions and case.accepted, f"another case: {case.text[:200]}")
    play.fault(blanks.status == 422, f"blanks: {blanks.text[:200]}")


@more("B81")
async def the_number_shown_gates(play: Play) -> None:
    """On the last day two of two are used: the third is refused, and told when the day ends."""
    step = dict(play.case.steps[-1])
    step["json"] = {**step["json"], "idempotencyKey": "b81-third"}
    said = await play.ask(FROM, step)
    told = said.body.get("used"), said.body.get("remaining"), said.body.get("resetsAt")
    play.fault("quota" in said.decisions, f"the third: {said.text[:200]}")
    play.fault(told == (2, 0, "2026-03-09T00:00:00Z"), f"told {told}")
