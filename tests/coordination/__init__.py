"""Tests of the room of coordination."""
