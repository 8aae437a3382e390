"""The Python client against a real gateway, and against servers that misbehave."""
