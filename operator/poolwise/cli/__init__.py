"""The command line: one module per command, each imported only when that command runs.

Belongs here: reading arguments and files, printing answers, exit codes. Nothing is decided here.
"""
