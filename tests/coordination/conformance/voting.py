"""The rows of the chapters on the rule of votes, on casting one, and on what a consensus can be."""

from typing import Any

from tests.coordination.conformance.proposing import AT_ONCE, ONE, missing, propose, stands, vote
from tests.coordination.conformance.rows import (
    BEAT,
    CHIEF,
    KEYLESS,
    ME,
    OTHER,
    REGISTER,
    SEND,
    THIRD,
    Cli,
    Http,
    Later,
    Part,
    Row,
    Tool,
    Want,
    error,
    get,
    mail,
    only,
    post,
)
from tests.coordination.conformance.shape import TIME, UUID

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
            "So it is where it was decided against it.",
            vote("key"),
            Want({"error": "consensus_closed", "status": "rejected"}, 409, ("message",)),
            (ME, propose(), vote("key", "reject")),
        ),
        Row(
            "Such a vote is not recorded.",
            get(ONE),
            Want({"status": "approved", "approve": 2, "reject": 0}, part=True),
            (
                *THREE,
                propose(),
                vote("key"),
                vote("other"),
                Http("POST", f"{ONE}/vote", {"vote": "reject"}, "third", status=409),
            ),
        ),
        Row(
            "A vote after `timeoutAt` is 409 `consensus_closed`, too, with the status at that time.",
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
            only(Want(a_vote(reason=None), 0), "agentId", "vote"),
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
            only(Want(a_vote(reason="because"), 0), "reason"),
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
            only(Want(a_vote()), "agentId", "consensusStatus"),
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
            only(Want(a_vote()), "agentId", "vote"),
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
        Row(
            "`reason`: why, not required.", vote("other"), only(Want(a_vote(reason=None)), "reason"), ASKED, ("reason",)
        ),
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
    return Row(
        f"`{word}`: {says}", get(ONE), want, (*ASKED, *before), (word,) if not more.pop("again", "") else (), **more
    )


STATUSES = Part(
    "Consensus statuses",
    (
        status("pending", "votes are taken."),
        status(
            "approved",
            "more than half of the active agents approve, and more approve than reject.",
            *map(vote, ("key", "other")),
        ),
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
