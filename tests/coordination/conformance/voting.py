"""The rows of the chapters on consensus: the rule, create, get, vote, the statuses."""

from typing import Any

from tests.coordination.conformance.rows import (
    BEAT,
    CHIEF,
    CONSENSUS,
    KEYLESS,
    ME,
    OTHER,
    PROPOSED,
    REGISTER,
    SEND,
    Cli,
    Differs,
    Http,
    Later,
    Part,
    Row,
    Tool,
    Want,
    error,
    get,
    mail,
    post,
    unknown_agent,
)
from tests.coordination.conformance.shape import TEXT, TIME, UUID, After

SHOWN = ("approve", "reject", "activeAgents", "threshold", "nextAction", "decidedAt")
"""What a consensus has beside what is documented."""
COUNTS = "Beside it stand `approve` and `reject` (how many), `threshold`, `activeAgents` and `nextAction`."
THIRD = post(REGISTER, {"agentName": "third-agent", "bindKey": True}, "third", keep={"third_agent": "id"})
ONE = f"{CONSENSUS}/$consensus"
AT_ONCE = Differs("9, point 7", "what is over reads so at once, as the votes are refused at once")
FIELDS = {"action": "pause outreach", "contactEmail": CHIEF, "reason": "Fatigue scores are high"}


def propose(minutes: Any = 5, **changes: Any) -> Http:  # noqa: ANN401 - a number, or nothing
    """A proposal; a member that is `...` is left out."""
    body = {"proposerAgent": "outreach-agent", "timeoutMinutes": minutes, **FIELDS} | changes
    return post(
        CONSENSUS, {name: one for name, one in body.items() if one is not ...}, keep={"consensus": "id", "ends": "timeoutAt"}
    )


def vote(by: str, word: str = "approve", **more: Any) -> Http:
    """A vote by a bound key's agent."""
    return post(f"{ONE}/vote", {"vote": word, **more}, by, keep={"vote": "id"})


def stands(status: str) -> Want:
    """A vote after which the consensus stands so."""
    return Want({"consensusStatus": status}, part=True)


def a_consensus(status: str = "pending", minutes: float = 5) -> dict[str, Any]:
    """A consensus as it is answered."""
    return {
        "id": UUID,
        "tenantId": "$tenant",
        "requestingAgentId": "$agent",
        **FIELDS,
        "status": status,
        "timeoutAt": After(minutes),
        "createdAt": TIME,
    }


def missing(field: str, status: int = 422) -> Want:
    """A request that lacks something."""
    return Want({"error": "invalid_request", "errors": [{"field": field, "message": TEXT}]}, status, ("message",))


TWO, THREE = (ME, OTHER), (ME, OTHER, THIRD)
GONE = Later(301)
VOTING = Part(
    "Consensus voting",
    (
        Row("With two active agents one vote decides nothing.", vote("key"), stands("pending"), (*TWO, propose())),
        Row(
            "With two active agents both must agree.", vote("other"), stands("approved"), (*TWO, propose(), vote("key"))
        ),
        Row(
            "With three active agents two votes decide: more than half.",
            vote("other"),
            stands("approved"),
            (*THREE, propose(), vote("key")),
        ),
        Row(
            "`reject` decides as `approve` does.",
            vote("other", "reject"),
            stands("rejected"),
            (*THREE, propose(), vote("key", "reject")),
        ),
        Row(
            "A tie decides nothing.",
            vote("other", "reject"),
            stands("pending"),
            (*TWO, propose(), vote("key")),
        ),
        Row(
            "Votes of agents that are active no longer count; where both sides have enough, the larger one wins.",
            vote("third"),
            stands("approved"),
            (*THREE, propose(60), vote("key"), vote("other", "reject"), GONE, post(BEAT, by="third")),
        ),
        Row(
            "Where both sides have enough and are equal, nothing is decided.",
            vote("other", "reject"),
            stands("pending"),
            (*TWO, propose(60), vote("key"), GONE, post(BEAT, by="other")),
        ),
        Row(
            "Where no agent is active, one vote decides, either way.",
            vote("key", "reject"),
            stands("rejected"),
            (*TWO, propose(60), GONE),
        ),
        Row(
            "A vote on what was decided is 409 `consensus_closed` with its status.",
            vote("key", "reject"),
            Want({"error": "consensus_closed", "status": "approved"}, 409, ("message",)),
            (ME, propose(), vote("key")),
        ),
        Row(
            "That vote is not recorded.",
            get(ONE),
            Want({"status": "approved", "approve": 2, "reject": 0}, part=True),
            (*THREE, propose(), vote("key"), vote("other"), Http("POST", f"{ONE}/vote", {"vote": "reject"}, "third", status=409)),
        ),
        Row(
            "So is a vote after `timeoutAt`, with the status at that time.",
            vote("key"),
            Want({"error": "consensus_closed", "status": "expired"}, 409, ("message",)),
            (ME, propose(), GONE),
            differs=AT_ONCE,
        ),
        Row(
            "Nothing is carried out, and no send waits for the outcome.",
            post(SEND, mail(to=CHIEF)),
            Want({"status": "queued"}, part=True),
            (ME, propose()),
            note="A send with `requireConsensusId` waits for it, and a mailbox may ask for that.",
        ),
    ),
)

CREATE = f'agents consensus create --action "pause outreach" --contact-email {CHIEF} --reason "Fatigue scores are high"'
CREATED = Want(a_consensus(), 0, SHOWN)
CREATING = Part(
    "Create a consensus request",
    (
        Row(
            "The command asks the other agents to vote.",
            Cli(f"{CREATE} --agent-name outreach-agent --timeout 5"),
            CREATED,
            (ME,),
            ("CLI",),
        ),
        Row(
            "`--agent-id`: the agent that asks, by its id; this or its name.",
            Cli(f"{CREATE} --agent-id $agent"),
            CREATED,
            (KEYLESS,),
            ("--agent-id",),
            note="A bound key needs neither.",
        ),
        Row(
            "`--agent-name`: the agent that asks, by its name.",
            Cli(f"{CREATE} --agent-name outreach-agent"),
            CREATED,
            (KEYLESS,),
            ("--agent-name",),
        ),
        *(
            Row(says, Cli(CREATE.replace(part, "")), Want(None, 2, err=flag), (ME,), (flag,))
            for says, part, flag in (
                ("`--action`: what is proposed, required.", ' --action "pause outreach"', "--action"),
                ("`--contact-email`: whom it is about, required.", f" --contact-email {CHIEF}", "--contact-email"),
                ("`--reason`: why, required.", ' --reason "Fatigue scores are high"', "--reason"),
            )
        ),
        Row(
            "`--timeout`: minutes, 5 without it.",
            Cli(f"{CREATE} --timeout 60"),
            Want(a_consensus(minutes=60), 0, SHOWN),
            (ME,),
            ("--timeout",),
        ),
        Row(
            "The route asks the other agents to vote.",
            propose(),
            Want(a_consensus(), ours=SHOWN),
            (ME,),
            ("POST /v1/agent/coordination/consensus", "curl", "Response"),
            note=COUNTS,
        ),
        Row(
            "`tenantId`: filled in from the key.",
            propose(tenantId="$tenant"),
            Want(a_consensus(), ours=SHOWN),
            (ME,),
            ("tenantId",),
        ),
        Row(
            "`requestingAgentId`: the agent that asks, by its id; this or its name is required.",
            propose(proposerAgent=..., requestingAgentId="$agent"),
            Want(a_consensus(), ours=SHOWN),
            (KEYLESS,),
            ("requestingAgentId",),
        ),
        Row(
            "`proposerAgent`: the agent that asks, by its name.",
            propose(proposerAgent=...),
            missing("proposerAgent"),
            (KEYLESS,),
            ("proposerAgent",),
            note="A bound key needs neither.",
        ),
        Row(
            "`action`: what is proposed, required; `proposedAction` is the same.",
            propose(action=..., proposedAction="pause outreach"),
            Want(a_consensus(), ours=SHOWN),
            (ME,),
            ("action",),
        ),
        Row("`action` is required.", propose(action=...), missing("action"), (ME,)),
        Row(
            "`contactEmail`: whom it is about, required.",
            propose(contactEmail=...),
            missing("contactEmail"),
            (ME,),
            ("contactEmail",),
        ),
        Row("`reason`: why, required.", propose(reason=...), missing("reason"), (ME,), ("reason",)),
        Row(
            "`timeoutMinutes`: minutes, 5 without it.",
            propose(...),
            Want(a_consensus(), ours=SHOWN),
            (ME,),
            ("timeoutMinutes",),
            note="At most a week.",
        ),
        Row(
            "The tool takes `agent_name`, `action`, `contact_email`, `reason` and `timeout_minutes`.",
            Tool(
                "create_consensus",
                {
                    "agent_name": "outreach-agent",
                    "action": "pause outreach",
                    "contact_email": CHIEF,
                    "reason": "Fatigue scores are high",
                    "timeout_minutes": 5,
                },
            ),
            Want({"ok": True, "consensus_id": UUID, "status": "pending", "contact_email": CHIEF}, part=True),
            (ME,),
            ("create_consensus",),
        ),
        unknown_agent(propose(proposerAgent="nobody"), "A proposal"),
    ),
    ("CLI", "POST /v1/agent/coordination/consensus", "curl", "create_consensus", "Response"),
    (
        *("--agent-id", "--agent-name", "--action", "--contact-email", "--reason", "--timeout"),
        *("tenantId", "requestingAgentId", "proposerAgent", "action", "contactEmail", "reason", "timeoutMinutes"),
    ),
    ("Options", "Response"),
)

NOWHERE = "b4c8e7a2-3f19-4d5e-a621-9c1d8f3e7b0a"
GETTING = Part(
    "Get a consensus request",
    (
        Row("The command shows one.", Cli("agents consensus get $consensus"), CREATED, (ME, propose()), ("CLI",)),
        Row(
            "The route answers what it answered when it was created, with the status of now.",
            get(ONE),
            Want(a_consensus("approved"), ours=SHOWN),
            (ME, propose(), vote("key")),
            ("GET /v1/agent/coordination/consensus/:id", "curl"),
        ),
        Row(
            "The tool takes `consensus_id`.",
            Tool("get_consensus", {"consensus_id": "$consensus"}),
            Want({"ok": True, "consensus_id": "$consensus", "status": "pending"}, part=True),
            (ME, propose()),
        ),
        Row(
            "The resource shows one.",
            Tool("gateway://consensus/$consensus"),
            Want(a_consensus(), ours=SHOWN),
            (ME, propose()),
        ),
        Row(
            "The single votes are not in it.",
            get(ONE),
            Want(a_consensus("pending"), ours=SHOWN),
            (*TWO, propose(), vote("key")),
            note=f"`GET {CONSENSUS}/:id/votes` lists them.",
        ),
        Row("An unknown id is 404.", get(f"{CONSENSUS}/{NOWHERE}"), error(404, "consensus_not_found")),
    ),
    ("CLI", "GET /v1/agent/coordination/consensus/:id", "curl"),
)

WHY = "Agreed, signals look bad"


def a_vote(status: str = "pending", reason: str | None = WHY) -> dict[str, Any]:
    """A vote's answer."""
    return {
        "id": UUID,
        "consensusRequestId": "$consensus",
        "agentId": "$other",
        "vote": "approve",
        "reason": reason,
        "consensusStatus": status,
        "createdAt": TIME,
    }


ASKED = (*TWO, propose())
FREE = (
    KEYLESS,
    post(REGISTER, {"agentName": "other-agent"}, "other", keep={"other": "id"}),
    propose(),
)
CASTING = Part(
    "Cast a vote",
    (
        Row(
            "An agent that votes again replaces its earlier vote.",
            get(ONE),
            Want({"approve": 0, "reject": 1, "status": "pending"}, part=True),
            (*ASKED, vote("other"), vote("other", "reject")),
        ),
        Row(
            "The command votes.",
            Cli(f'agents consensus vote $consensus --agent-id $other --vote approve --reason "{WHY}"', "other"),
            Want(a_vote(), 0),
            ASKED,
            ("CLI",),
        ),
        Row(
            "`--agent-id`: the agent that votes, required.",
            Cli("agents consensus vote $consensus --agent-id $other --vote approve", "other"),
            Want(a_vote(reason=None), 0),
            FREE,
            ("--agent-id",),
            note="A bound key does not need it, and `--agent-name` goes, too.",
        ),
        Row(
            "`--vote`: approve or reject, required.",
            Cli("agents consensus vote $consensus --vote maybe", "other"),
            Want(None, 2, err="must be approve or reject"),
            ASKED,
            ("--vote",),
        ),
        Row(
            "`--reason`: why, not required.",
            Cli("agents consensus vote $consensus --vote approve --reason because", "other"),
            Want(a_vote(reason="because"), 0),
            ASKED,
            ("--reason",),
        ),
        Row(
            "The route votes; `consensusStatus` is the status after this vote.",
            vote("other", agentId="$other", reason=WHY),
            Want(a_vote("approved")),
            (*ASKED, vote("key")),
            ("POST /v1/agent/coordination/consensus/:id/vote", "curl", "Response"),
        ),
        Row(
            "`tenantId`: filled in from the key.",
            vote("other", tenantId="$tenant", reason=WHY),
            Want(a_vote()),
            ASKED,
            ("tenantId",),
        ),
        Row(
            "`agentId`: the agent that votes, by its id; this or its name is required, and 404 where it is not registered.",
            vote("other", agentId="agent_000000000000"),
            error(404, "agent_not_found"),
            ASKED,
            ("agentId",),
        ),
        Row(
            "`agentName`: the agent that votes, by its name.",
            vote("other", agentName="other-agent", reason=WHY),
            Want(a_vote()),
            FREE,
            ("agentName",),
        ),
        Row(
            "`vote`: approve or reject, required; anything else is 400.",
            vote("other", "maybe"),
            missing("vote", 400),
            ASKED,
            ("vote",),
        ),
        Row("`reason`: why, not required.", vote("other"), Want(a_vote(reason=None)), ASKED, ("reason",)),
        Row(
            "The tool takes `consensus_id`, `agent_id` and `vote`.",
            Tool("vote", {"consensus_id": "$consensus", "agent_id": "$other", "vote": "approve"}, "other"),
            Want({"ok": True, "vote": "approve", "status": "pending"}, part=True),
            ASKED,
            ("vote (tool)",),
        ),
    ),
    ("CLI", "POST /v1/agent/coordination/consensus/:id/vote", "curl", "vote (tool)", "Response"),
    ("--agent-id", "--vote", "--reason", "tenantId", "agentId", "agentName", "vote", "reason"),
    ("Options", "Vote response"),
)


def status(word: str, says: str, *before: Http | Later, **more: Any) -> Row:
    """A status."""
    want = Want({"status": word}, part=True)
    return Row(f"`{word}`: {says}", get(ONE), want, (*ASKED, *before), (word,) if not more.pop("again", "") else (), **more)


STATUSES = Part(
    "Consensus statuses",
    (
        status("pending", "votes are taken."),
        status("approved", "more than half of the active agents approve, and more approve than reject.", *map(vote, ("key", "other"))),
        status(
            "rejected",
            "more than half of the active agents reject, and more reject than approve.",
            vote("key", "reject"),
            vote("other", "reject"),
        ),
        status("expired", "nothing was decided when `timeoutAt` passed.", GONE),
        status(
            "expired",
            "a job writes it every 15 minutes, and until then it reads `pending`.",
            GONE,
            again="yes",
            differs=AT_ONCE,
        ),
    ),
    (),
    ("pending", "approved", "rejected", "expired"),
)
