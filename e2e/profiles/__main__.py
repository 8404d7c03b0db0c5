"""``python -m e2e.profiles NAME`` prints the Nodes of a profile; without a name, what there is."""

from __future__ import annotations

import contextlib
import sys

import yaml

from e2e import profiles


def main(arguments: list[str]) -> int:
    """Print one profile as a List, or the names of all."""
    if not arguments:
        for name in profiles.names():
            print(f"{name:24} {profiles.about(name)}")
        return 0
    try:
        nodes = [node for name in arguments for node in profiles.render(name)]
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    document = {"apiVersion": "v1", "items": nodes, "kind": "List", "metadata": {}}
    text = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=100)
    with contextlib.suppress(BrokenPipeError):  # a reader such as head has seen enough
        sys.stdout.write(text)
        sys.stdout.flush()
    return 0


class _PlainDumper(yaml.SafeDumper):
    """Repeats what is shared between nodes, as the API server does."""

    def ignore_aliases(self, data: object) -> bool:
        return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
