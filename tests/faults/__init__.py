"""Races, kills and trouble with real processes, proved by one history each (`tests/history.py`)."""
