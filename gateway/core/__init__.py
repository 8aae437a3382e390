"""What the gateway computes: addresses, mail, facts, verdicts, states. No clock, no dice, no socket, no table."""
