"""One conformance suite for both databases."""
