"""Tests of the command line: usage in this process, main paths with real ones."""
