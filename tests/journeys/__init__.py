"""From an agent to the smarthost with real processes."""
