"""One replica under load: its memory, its iterations, its queues, and the tails that follow."""
