"""Queues of Kueue: which pools a queue lets a job use, what Kueue says of it, and what we answer.

Poolwise decides where a job runs and in which shape; Kueue decides when, within its quotas.
"""
