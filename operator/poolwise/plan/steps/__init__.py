"""What a training run tells of its steps, and what follows: how long a step takes, how far the run
is, when it last wrote a checkpoint, and what is left of it.

Pure: looks at the metrics of rank 0 in, values out. No I/O, no clock.
"""
