"""The only way out: connections to the smarthost and one attempt to give it one mail for one recipient."""
