"""Faults that bit other gateways, as cases in `fixtures/cases`: one driver plays every file that the index names.

A new case is a new file and an entry in the index. Cases speak neutral words; `words` turns them into ours, `tables` says
which cases are not played and where our pages want something else. `book` reads, `house` runs a real gateway on a real
store with a real SMTP sink, `play`, `acts` and `upstream` do what a case says, `expect` and `wire` look at what came of
it. `python -m tests.cases` prints the table of all results.
"""
