"""The doors: each turns its protocol into a submission and a decision into its reply; none knows another.

What they share is here: who a caller is (`auth`), what may be asked for (`fields`, `asked`), how that becomes a mail
(`letter`), what is told of it (`answers`), what is refused before anything is judged (`refusal`), and what a process
gives to its doors (`context`).
"""
