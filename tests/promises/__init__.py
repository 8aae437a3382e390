"""What must be true of a run: its record (`record.py`), and the promises, each of them one function that is a check."""
