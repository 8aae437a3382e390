"""Each policy on its own."""
