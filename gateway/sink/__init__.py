"""A local SMTP sink: takes mail, keeps it where a person or a test can look, and can be as rude as a script says.

For development, demos and tests, on the loopback. It relays nothing and imports nothing else of the gateway, so that
what it saw is evidence of its own. Two servers stand behind one face (`Sink`): `receiver` is a well-behaved one on
aiosmtpd, `scripted` an own one for everything that a library cannot do (half a reply, a reply too early, a mail that is
taken and then dropped). The small language of the scripts is described in `script`.
"""

from gateway.sink.box import Box, Line, Mail
from gateway.sink.script import Script
from gateway.sink.server import Sink, run

__all__ = ["Box", "Line", "Mail", "Script", "Sink", "run"]
