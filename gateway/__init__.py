"""An outbound email gateway for fleets of AI agents.

Agents ask to send over HTTP (later SMTP and MCP); a table of policies judges each mail against one shared memory of
leases, suppressions, cooldowns and quotas; decision, send record and outbox are one transaction; relay workers deliver
through an SMTP smarthost and give their last word, the permit, three bytes before the message is complete.

The folders are the vocabulary: `core` computes, `policies` say what is wrong, `store` is the only place that knows
SQL, `intake` is the only way in, `relay` the only way out, `doors` translate protocols, `cli` is the command line and
`app` puts all of it together.
"""

__version__ = "0.1.0"
