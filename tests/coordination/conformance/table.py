"""The whole table, in the page's order, and what the page has in all: how many headings, examples and rows of tables."""

from tests.coordination.conformance import (
    beating,
    blocking,
    configuring,
    leasing,
    opening,
    proposing,
    registering,
    releasing,
    voting,
)
from tests.coordination.conformance.rows import Part

PARTS: tuple[Part, ...] = (
    opening.INTRODUCTION,
    registering.REGISTERING,
    beating.HEARTBEAT,
    blocking.CONTACT_LEASES,
    leasing.ACQUIRING,
    releasing.RELEASING,
    releasing.LISTING,
    voting.VOTING,
    proposing.CREATING,
    proposing.GETTING,
    voting.CASTING,
    voting.STATUSES,
    configuring.AGENT_CONFIG,
    configuring.GETTING,
    configuring.UPDATING,
    configuring.KEYS,
    opening.EVENTS,
)
BELOW = ("Related",)
"""Headings of the page that say nothing to try: links to other pages."""
HEADINGS = 28
COMMANDS, CALLS, ROUTES, DOCUMENTS = 10, 10, 10, 14
"""Code blocks of the page: command lines, calls with curl, routes, and JSON."""
CELLS = 52
"""Rows of the page's tables, but for their heads."""
