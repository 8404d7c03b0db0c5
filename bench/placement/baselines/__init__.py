"""Rivals, each as its paper or product defines it, with what the truth can give it.

All but B8 and B9 start jobs in order of arrival and pass over one that has no place now (what Kueue
calls BestEffortFIFO), never stop a job, and keep a gang on one node where a node can take it whole:
each of these was better for them than its opposite.
"""
