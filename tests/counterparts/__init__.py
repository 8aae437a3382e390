"""Real programs that others wrote, on both sides of real gateways: each test is skipped where its program is not installed."""
