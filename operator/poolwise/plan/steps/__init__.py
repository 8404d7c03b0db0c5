"""What a training run tells of its steps, and what follows: how long a step takes, how far the run
is, and when it last wrote a checkpoint.

Pure: looks at the metrics of rank 0 in, values out. No I/O, no clock.
"""
