"""What must be true of a run: its record (`shapes.py`, `record.py`), and the promises, each of them one function: a check."""
