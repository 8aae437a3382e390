"""The SMTP submission door (RFC 6409): any mail program gets the policies by changing host and port.

`server` listens, `talk` is one connection, `session` its commands, `submission` the way of a mail into the intake. What is
asked of the gateway stands in X-Gateway-* headers (`orders`), what it answers in replies (`replies`).
"""

from gateway.doors.smtp.house import House, Limits
from gateway.doors.smtp.server import SmtpDoor, a_house, certificate_and_trust

__all__ = ["House", "Limits", "SmtpDoor", "a_house", "certificate_and_trust"]
