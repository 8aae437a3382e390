"""`gateway demo`: the main job in one process, on a fresh database, with a sink for the smarthost and two agents that race.

`stage` brings everything up, `story` plays the acts over real HTTP, `board` shows them and keeps count of what was right.
"""
