"""Queues of runs and services together: what the joint planner makes of them, beside the best."""
