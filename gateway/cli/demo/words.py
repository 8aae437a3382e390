"""The people to whom the demo's agents write."""

CUSTOMER = "customer@example.net"
OPTED_OUT = "opted-out@example.org"
