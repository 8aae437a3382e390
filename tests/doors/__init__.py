"""Tests of the doors."""
