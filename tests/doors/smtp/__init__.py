"""The SMTP submission door, over real sockets and real TLS."""
