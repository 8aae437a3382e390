"""Tests of the room of events."""
