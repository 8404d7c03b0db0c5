"""``python -m poolwise``: the command line, see :mod:`poolwise.cli.app`."""

from poolwise.cli.app import main

if __name__ == "__main__":
    main()
