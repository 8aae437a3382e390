"""The sink, seen by a client that speaks SMTP by hand and by the standard library's."""
