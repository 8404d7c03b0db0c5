"""What is wrong with the replicas of a service though their number may be right.

Each detector is a pure function from what the last half hour showed to a :class:`.clue.Clue`; a
:class:`.watch.Watch` makes of clues that last what is told, and lets go of them when they stay
away. More replicas hide most of these at a price, so each comes with the advice that does not.
"""
