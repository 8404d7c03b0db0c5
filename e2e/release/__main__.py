"""``python -m e2e.release``: what the release workflow does, step by step, on any machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.errors import HarnessError
from e2e.release import charts, home, manifests, notes, versions
from e2e.release.image import Image
from e2e.release.versions import ROOT

OUTPUT = ROOT / "build" / "release"


def main(arguments: list[str] | None = None) -> None:
    """Run one step."""
    told = _parser().parse_args(arguments)
    told.step(told)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.release", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    one = steps.add_parser("check", help="whether the tree is fit for that tag")
    one.add_argument("tag", help="such as v1.2.3")
    one.add_argument("--repository", metavar="OWNER/NAME", help="where it is released from")
    one.set_defaults(step=_check)
    one = steps.add_parser("notes", help="print this version's section of CHANGELOG.md")
    one.set_defaults(step=_notes)
    one = steps.add_parser("files", help="write install.yaml, crds.yaml and the charts' archives")
    one.add_argument("--image", required=True, metavar="REPOSITORY@DIGEST")
    one.add_argument("--output", type=Path, default=OUTPUT)
    one.set_defaults(step=_files)
    one = steps.add_parser("push", help="push the charts' archives; prints where each lies")
    one.add_argument("registry", help="such as ghcr.io/you/charts")
    one.add_argument("--plain-http", action="store_true", help="for a registry of your own")
    one.add_argument("--output", type=Path, default=OUTPUT)
    one.set_defaults(step=_push)
    return parser


def _check(told: argparse.Namespace) -> None:
    version = versions.check(told.tag)
    notes.section((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
    if told.repository:
        home.check(told.repository)
    print(version)


def _notes(_: argparse.Namespace) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    print(notes.section(changelog, versions.source_version()), end="")


def _files(told: argparse.Namespace) -> None:
    image = Image.parse(told.image)
    told.output.mkdir(parents=True, exist_ok=True)
    (told.output / "crds.yaml").write_text(manifests.crds(), "utf-8")
    (told.output / "install.yaml").write_text(manifests.install(image), "utf-8")
    charts.package(told.output)
    for path in sorted(told.output.iterdir()):
        print(path)


def _push(told: argparse.Namespace) -> None:
    for reference in charts.push(told.output, told.registry, plain_http=told.plain_http):
        print(reference)


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(str(error))
