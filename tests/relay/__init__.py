"""The way out, against real sockets: a well-behaved and a scripted smarthost, on both event loops, with and without TLS."""
