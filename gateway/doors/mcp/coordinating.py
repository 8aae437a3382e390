"""The tools for agents among each other: who is there, who has which contact, what they agree on."""

import re
from typing import Any

from gateway.doors.mcp import told
from gateway.doors.mcp.tool import Arguments, Ask, Told, members

LEASE = "/v1/agent/coordination/lease"
CONSENSUS = "/v1/agent/coordination/consensus"
BOUND = ("bound", "already_bound")


async def register_agent(given: Arguments, ask: Ask) -> Told:
    """Enter the registry."""
    body = {"bindKey": True} | members(given)
    answer = await ask("POST", "/v1/agent/register", body=body)
    if not answer.good:
        return told.refused(answer)
    binding = answer.body["apiKeyBinding"]
    said = {"ok": True, "agent_id": answer.body["id"], "binding": binding}
    said |= told.plain(answer.body, "agentName", "agentRole", "boundToAgentId")
    if binding == "bound_to_other_agent":
        said["next_action"] = "your key acts as bound_to_agent_id; ask a person for a key of your own to act as another"
    elif binding == "agent_has_other_key":
        said["next_action"] = "another key answers for this agent: register under a name of your own"
    else:
        said["next_action"] = (
            "nothing" if binding in BOUND else "name this agent in each call: your key is bound to none"
        )
    return Told(said)


async def heartbeat(given: Arguments, ask: Ask) -> Told:
    """Say that one is there."""
    answer = await ask("POST", "/v1/agent/coordination/heartbeat", body=members(given))
    return (
        Told({"ok": True, "next_action": "again within 5 minutes, if you vote"})
        if answer.good
        else told.refused(answer)
    )


async def acquire_lease(given: Arguments, ask: Ask) -> Told:
    """Take a contact."""
    return told.of_lease(await ask("POST", LEASE, body=members(given)))


async def renew_lease(given: Arguments, ask: Ask) -> Told:
    """Keep a contact."""
    path = f"{LEASE}/{told.segment(given['lease_id'])}"
    answer = await ask("PUT", path, body=members(given, without=("lease_id",)))
    if not answer.good:
        return told.refused(answer)
    if answer.body["renewed"]:
        return Told({"ok": True, "until": answer.body["expiresAt"], "next_action": "go on"})
    said = {"ok": False, "reason": answer.body["reason"], "repeat": "acquire_first"}
    return Told(said | {"next_action": "stop; acquire_lease again, then check again before you send"})


async def release_lease(given: Arguments, ask: Ask) -> Told:
    """Give a contact back."""
    answer = await ask("DELETE", f"{LEASE}/{told.segment(given['lease_id'])}")
    if not answer.good:
        return told.refused(answer)
    if answer.body["released"]:
        said = {"ok": True, "next_action": "nothing; others may take the contact"}
        return Told(said | told.plain(answer.body, "inFlight"))
    reason = answer.body["reason"]
    return Told({"ok": False, "reason": reason, "next_action": "nothing; it had ended already", "repeat": "harmless"})


async def list_leases(given: Arguments, ask: Ask) -> Told:
    """Who has which contact."""
    cursor = str(given.get("cursor") or 0)
    if not PLACE.fullmatch(cursor):
        return told.faulty([("cursor", "is not one that list_leases gave")])
    query = {name: str(value) for name, value in members(given, without=("cursor",)).items()}
    answer = await ask("GET", f"{LEASE}s", query=query)
    if not answer.good:
        return told.refused(answer)
    found, start = answer.body, int(cursor)
    said = {"ok": True, "count": len(found), "leases": [told.lease(one) for one in found[start : start + SHOWN]]}
    return Told(said | ({"next_cursor": str(start + SHOWN)} if len(found) > start + SHOWN else {}))


SHOWN = 20
"""Leases that are listed at once."""
PLACE = re.compile("[0-9]{1,9}")
"""A cursor of leases: how many come before."""
VOTED = ("action", "contactEmail", "reason", "status", "timeoutAt", "approve", "reject", "threshold", "activeAgents")


def _consensus(body: dict[str, Any]) -> dict[str, Any]:
    said = {"ok": True, "consensus_id": body["id"]} | told.plain(body, *VOTED)
    return said | {"next_action": told.following(body.get("nextAction") or "wait for the votes: read get_consensus")}


async def create_consensus(given: Arguments, ask: Ask) -> Told:
    """Ask the others."""
    body = members(given, without=("agent_name", "agent_id"))
    named = {"agent_name": "proposerAgent", "agent_id": "requestingAgentId"}
    body |= {wire: given[name] for name, wire in named.items() if given.get(name) is not None}
    answer = await ask("POST", CONSENSUS, body=body)
    return Told(_consensus(answer.body)) if answer.good else told.refused(answer)


async def get_consensus(given: Arguments, ask: Ask) -> Told:
    """How a vote stands."""
    answer = await ask("GET", f"{CONSENSUS}/{told.segment(given['consensus_id'])}")
    return Told(_consensus(answer.body)) if answer.good else told.refused(answer)


async def vote(given: Arguments, ask: Ask) -> Told:
    """Vote."""
    path = f"{CONSENSUS}/{told.segment(given['consensus_id'])}/vote"
    answer = await ask("POST", path, body=members(given, without=("consensus_id",)))
    if not answer.good:
        return told.refused(answer)
    status = answer.body["consensusStatus"]
    following = (
        "wait for the other votes: read get_consensus" if status == "pending" else "read get_consensus, and act on it"
    )
    return Told({"ok": True, "vote": answer.body["vote"], "status": status, "next_action": following})
