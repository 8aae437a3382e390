"""Benchmarks: ratios within one run, medians of several rounds. Never part of the test run."""
