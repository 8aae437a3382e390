"""The MCP door: tools for models, over streamable HTTP in the gateway's process or over stdio beside a client.

It only translates: each tool is one or a few requests of the HTTP door, made with the caller's own key, and its result says in
few words what a model needs to act. What a policy refuses is a result, not an error of the protocol.
"""
