"""The rows of the chapters on an agent's config."""

from typing import Any

from tests.coordination.conformance.rows import (
    KEYLESS,
    ME,
    OTHER,
    SEND,
    Cli,
    Differs,
    Http,
    Part,
    Row,
    Want,
    error,
    get,
    mail,
    post,
)
from tests.coordination.conformance.shape import TEXT

CONFIG = "/v1/agent/agents/$agent/config"
HUMANIZER = "/v1/agent/config/humanizer"
SHOWN = ("humanizer_provider",)
"""What a config has once something was set."""
ON: dict[str, Any] = {"humanizer_enabled": True, "humanizer_style": "professional"}
CLEAR = Differs("9, point 5", "422 names the key and 404 the agent, where the page has a 500 for both")
NOT_YET = Differs("4", "a field that is documented and not supported is refused by name, so that nobody relies on it")
EFFECTIVE = get(HUMANIZER, query={"agentId": "outreach-agent"})


def put(by: str = "operator", path: str = CONFIG, **values: Any) -> Http:
    """A change."""
    return Http("PUT", path, values, by)


def holds(says: str, *before: Http, enabled: bool, style: str = "professional") -> Row:
    """What holds for an agent's mail."""
    want = Want({"effective": {"enabled": enabled, "style": style}}, part=True)
    return Row(says, EFFECTIVE, want, (ME, *before))


def changed(config: dict[str, Any], **more: Any) -> Want:
    """A change's answer."""
    return Want({"agentId": "$agent", "config": config, "updated": True, **more}, ours=("config.humanizer_provider",))


GETTING = Part(
    "Get config",
    (
        Row(
            "The command shows an agent's config.",
            Cli("agents config $agent"),
            Want(ON, 0, SHOWN),
            (ME, put(**ON)),
            ("CLI",),
        ),
        Row(
            "The route answers the config itself.",
            get(CONFIG),
            Want(ON, ours=SHOWN),
            (ME, put(**ON)),
            ("GET /v1/agent/agents/:agentId/config", "curl"),
        ),
        Row("It is `{}` where nothing was set.", get(CONFIG), Want({}), (ME,)),
        Row(
            "It is `{}` for an agent that is not registered, too.",
            get("/v1/agent/agents/nobody/config"),
            error(404, "agent_not_found"),
            differs=Differs("9, point 5", "an unknown agent is 404 everywhere: a misspelt one should not look unset"),
        ),
    ),
    ("CLI", "GET /v1/agent/agents/:agentId/config", "curl"),
)

COMMAND = "agents update-config $agent --config"
UPDATING = Part(
    "Update config",
    (
        Row(
            "The command changes an agent's config.",
            Cli(COMMAND + """ '{"humanizer_enabled": true, "humanizer_style": "professional"}'""", "operator"),
            Want({"agentId": "$agent", "config": ON, "updated": True}, 0, ("config.humanizer_provider",)),
            (ME,),
            ("CLI",),
        ),
        Row(
            "The route changes an agent's config.",
            put(**ON),
            changed(ON),
            (ME,),
            ("PUT /v1/agent/agents/:agentId/config", "curl"),
        ),
        Row(
            "Keys that are sent are merged into those that are stored.",
            put(humanizer_style="casual"),
            changed(ON | {"humanizer_style": "casual"}),
            (ME, put(**ON)),
        ),
        Row(
            "`warnings` says that a key was ignored.",
            put(humanizer_style="casual", humanizer_provider="another"),
            changed({"humanizer_style": "casual"}, warnings=["humanizer_provider_ignored"]),
            (ME,),
        ),
        Row(
            "So does the command.",
            Cli(COMMAND + """ '{"humanizer_provider": "another"}'"""),
            Want(None, 0, out="updated", err="warning: humanizer_provider_ignored"),
            (ME,),
        ),
    ),
    ("CLI", "PUT /v1/agent/agents/:agentId/config", "curl"),
)

TENANT_ON = put(path=HUMANIZER, enabled=True, style="friendly")
KEYS = Part(
    "Allowed config keys",
    (
        Row(
            "`humanizer_enabled`: true or false; to turn it on needs a plan that has the humanizer.",
            put(humanizer_enabled=True),
            changed({"humanizer_enabled": True}),
            (ME,),
            ("humanizer_enabled",),
            note="There are no plans here, and this gateway rewrites no mail: it keeps the setting for programs that do.",
        ),
        Row(
            "`humanizer_style`: casual, professional or friendly.",
            put(humanizer_style="rude"),
            Want(
                {"error": "invalid_request", "errors": [{"field": "humanizer_style", "message": TEXT}]},
                422,
                ("message",),
            ),
            (ME,),
            ("humanizer_style",),
        ),
        Row(
            "`humanizer_provider`: ignored, and always read as `anthropic`.",
            get(CONFIG),
            Want({"humanizer_provider": "anthropic"}),
            (ME, put(humanizer_provider="another")),
            ("humanizer_provider",),
        ),
        Row(
            "Other keys are dropped.",
            put(humanizer_style="casual", temperature=5),
            changed({"humanizer_style": "casual"}),
            (ME,),
        ),
        Row(
            "A body without a known key is refused, with a 500.",
            put(temperature=5),
            Want(
                {"error": "invalid_request", "errors": [{"field": "humanizer_enabled", "message": TEXT}]},
                422,
                ("message",),
            ),
            (ME,),
            differs=CLEAR,
        ),
        Row(
            "An agent that is not registered is refused, with a 500.",
            put(path="/v1/agent/agents/nobody/config", humanizer_style="casual"),
            error(404, "agent_not_found"),
            differs=CLEAR,
        ),
        holds(
            "The agent's style goes before the tenant's.",
            TENANT_ON,
            put(humanizer_style="casual"),
            enabled=True,
            style="casual",
        ),
        holds("Without one of its own the tenant's style holds.", TENANT_ON, enabled=True, style="friendly"),
        holds(
            "The agent's on goes before the tenant's off.",
            put(path=HUMANIZER, enabled=False),
            put(humanizer_enabled=True),
            enabled=True,
        ),
        holds(
            "The agent's off stays off.",
            TENANT_ON,
            put("key", humanizer_enabled=False),
            enabled=False,
            style="friendly",
        ),
        Row(
            "A mailbox that was turned off stays off, and its style goes before the tenant's.",
            Http("PATCH", "/v1/agent/mailboxes/$mailbox", {"config": {"humanizer": {"enabled": False}}}, "operator"),
            Want({"error": "invalid_request"}, 422, part=True),
            differs=NOT_YET,
        ),
        Row(
            "`humanize: false` on a send turns it off for that send.",
            post(SEND, mail(humanize=False)),
            Want({"status": "queued"}, part=True),
            (ME,),
        ),
        Row(
            "`humanizeStyle` on a send sets its style.",
            post(SEND, mail(humanizeStyle="casual")),
            Want(
                {"error": "invalid_request", "errors": [{"field": "humanizeStyle", "message": TEXT}]}, 422, ("message",)
            ),
            (ME,),
            differs=NOT_YET,
        ),
        Row(
            "An agent's key turns it off.",
            put("key", humanizer_enabled=False),
            changed({"humanizer_enabled": False}),
            (ME, put(humanizer_enabled=True)),
        ),
        Row(
            "To turn it on is a person's decision.",
            put("key", humanizer_enabled=True),
            Want(
                {"error": "human_decision_required", "loosens": ["humanizer_enabled"], "decisionUrl": TEXT},
                403,
                part=True,
            ),
            (ME,),
        ),
        Row(
            "To change the style while it is on is a person's decision.",
            put("key", humanizer_style="casual"),
            Want(
                {"error": "human_decision_required", "loosens": ["humanizer_style"], "decisionUrl": TEXT},
                403,
                part=True,
            ),
            (ME, put(**ON)),
        ),
    ),
    (),
    ("humanizer_enabled", "humanizer_style", "humanizer_provider"),
)
AGENT_CONFIG = Part(
    "Agent config",
    (
        Row(
            "Each agent has a config of its own.",
            get("/v1/agent/agents/$other/config"),
            Want({}),
            (ME, OTHER, put(humanizer_style="casual")),
        ),
        Row(
            "An agent that no key is bound to has one, too.",
            put(humanizer_style="casual"),
            changed({"humanizer_style": "casual"}),
            (KEYLESS,),
        ),
    ),
)
