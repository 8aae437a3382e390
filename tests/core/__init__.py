"""Tests of the core: no clock, no dice, no socket, no table."""
