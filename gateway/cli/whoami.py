"""`whoami`: whose key this is, at which gateway, and what it may do."""

from gateway.cli import options, printing
from gateway.cli.answers import listed, objects
from gateway.cli.api import Api
from gateway.cli.printing import member


def whoami(url: options.Url = None, key: options.Key = None, as_json: options.Json = False) -> None:
    """Say whose key is in use, as which agent it acts, from which mailboxes it sends, and what it may do."""
    api = Api(url, key, as_json=as_json)
    got = api.ask("GET", "/v1/agent/whoami").body
    if as_json:
        printing.document(got)
        return
    agent = member(got, "agent_name")
    printing.line(f"{agent or 'bound to no agent'}, at {api.url}", "good")
    boxes = ", ".join(str(box["address"]) for box in objects(member(got, "mailboxes")))
    key_words = f"{member(got, 'key_id')} ({member(got, 'key_prefix')}...)"
    rows = [("tenant", member(got, "tenant_id")), ("key", key_words), ("mailboxes", boxes)]
    rows += [("scopes", listed(member(got, "scopes"))), ("requests a minute", member(got, "requests_per_minute"))]
    printing.pairs([*rows, ("agent id", member(got, "agent_id"))])
