"""The tests: a folder per floor, the laws, the house, the benches."""
