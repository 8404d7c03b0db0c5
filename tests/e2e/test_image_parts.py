"""What goes into the image is chosen without an engine."""

from __future__ import annotations

import io
import stat
import tarfile
from pathlib import Path

import pytest

from e2e.errors import BuildFailed
from e2e.image import __main__ as command
from e2e.image import build, checks, source, wheels
from e2e.image import engine as engine_module
from e2e.image.contents import Entry, added, differences, read
from e2e.image.engine import EngineFailed, docker, why_unavailable
from e2e.image.startup import Start, report
from e2e.image.target import Target

BOOKWORM = Target((3, 11), "x86_64", (2, 36))


def test_wheels_are_downloaded_again_for_another_base_or_lock() -> None:
    keys = {
        wheels.key(BOOKWORM, b"a==1"),
        wheels.key(BOOKWORM, b"a==2"),
        wheels.key(Target((3, 12), "x86_64", (2, 36)), b"a==1"),
        wheels.key(Target((3, 11), "aarch64", (2, 36)), b"a==1"),
    }
    assert len(keys) == 4
    assert wheels.key(BOOKWORM, b"a==1") in keys


def test_own_wheel_is_the_same_twice_and_replaces_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "BUILD", tmp_path)
    monkeypatch.setattr(wheels, "OWN", tmp_path / "own")
    wheels.OWN.mkdir()
    (wheels.OWN / "poolwise-0.0.1-py3-none-any.whl").touch()
    about = source.read()
    contents = []
    for _ in range(2):
        wheels._build_own(about)
        (wheel,) = wheels.OWN.iterdir()
        contents.append(wheel.read_bytes())
    assert contents[0] == contents[1]
    assert about.version in wheel.name


def test_a_package_without_a_wheel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"there-is-no-such-package==1 --hash=sha256:{'0' * 64}\n")
    for name, value in {"BUILD": tmp_path, "FOLDER": tmp_path / "w", "LOCK": lock}.items():
        monkeypatch.setattr(wheels, name, value)
    monkeypatch.setattr(wheels, "STAMP", tmp_path / "stamp")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        BuildFailed, match=r"getting wheels for CPython 3.11.*\n(.*\n)*.*no-such-pack"
    ):
        wheels._download(BOOKWORM)
    assert not wheels._is_current(BOOKWORM)


def test_source_goes_into_labels_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    about = source.read("https://example.com/poolwise")
    assert about.epoch_seconds == 1_700_000_000
    assert "SOURCE=https://example.com/poolwise" in about.build_arguments
    assert f"VERSION={about.version}" in about.build_arguments


def test_source_is_read_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    about = source.read()
    assert (about.revision, about.epoch_seconds) == ("unknown", 0)


def test_default_base_is_the_dockerfiles() -> None:
    assert build.default_base() in (source.ROOT / "Dockerfile").read_text()
    assert command.arguments([]).base == build.default_base()
    assert command.arguments([]).tag == "poolwise:dev"


def test_a_missing_engine_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert why_unavailable() == "docker is not on PATH"
    with pytest.raises(EngineFailed, match=r"^docker: not found on PATH; install Docker"):
        docker("info")
    with pytest.raises(EngineFailed, match=r"^no container engine: docker is not on PATH$"):
        build.image("base", "tag", source.read())


def test_a_program_in_a_refused_command_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "docker"
    advice = "Run 'docker run --help' for more information"
    engine.write_text(f'#!/bin/sh\necho "no such base" >&2\necho "{advice}" >&2\nexit 125\n')
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(EngineFailed) as caught:
        docker("run", "base", "python3", "-c", "\nimport sys\n")
    assert str(caught.value) == "docker run base python3 -c ...: no such base"


def test_an_engine_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine_module.why_unavailable() == (
        "docker info --format {{.ServerVersion}}: Cannot connect to the daemon"
    )


def entry(
    path: str, kind: str = "file", mode: int = 0o644, owner: tuple[int, int] = (0, 0)
) -> Entry:
    return Entry(path, kind, mode, owner, "content", None)


SITE = "opt/poolwise/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("check", "bad", "good"),
    [
        (checks.build_tools, "usr/bin/x86_64-linux-gnu-gcc-12", "usr/bin/gcore"),
        (checks.build_tools, "usr/local/bin/pip3.13", "usr/bin/python3"),
        (checks.build_tools, "usr/lib/python3/dist-packages/pip/__init__.py", f"{SITE}/pipes.py"),
        (checks.not_needed, f"{SITE}/kubernetes/watch/watch_test.py", f"{SITE}/latest.py"),
        (checks.not_needed, f"{SITE}/matplotlib/__init__.py", f"{SITE}/rich/__init__.py"),
        (checks.not_compiled, f"{SITE}/kopf/on.py", "usr/lib/python3.11/on.py"),
    ],
)
def test_contents_that_do_not_belong_are_named(check, bad: str, good: str) -> None:
    assert check([entry(bad), entry(good)]) == [bad]


def test_a_module_with_its_compiled_file_is_fine() -> None:
    compiled = f"{SITE}/kopf/__pycache__/on.cpython-311.pyc"
    assert checks.not_compiled([entry(f"{SITE}/kopf/on.py"), entry(compiled)]) == []


def test_writable_files_are_named() -> None:
    listing = [
        entry("etc/passwd", mode=0o664),
        entry(f"{SITE}/a.py", owner=(65532, 65532)),
        entry(f"{SITE}/b.py"),
        entry("opt/poolwise/bin/python", kind="link", mode=0o777),
        entry("tmp", kind="folder", mode=0o777),
    ]
    assert checks.writable(listing) == ["etc/passwd", f"{SITE}/a.py"]


def test_only_new_setuid_programs_are_named() -> None:
    base = [entry("usr/bin/su", mode=0o755 | stat.S_ISUID)]
    image = [
        *base,
        entry("usr/bin/new", mode=0o755 | stat.S_ISGID),
        entry("usr/bin/ls", mode=0o755),
    ]
    assert checks.gained_rights(image, base) == ["usr/bin/new"]


def test_wrong_settings_are_named() -> None:
    labels = {f"org.opencontainers.image.{name}": "x" for name in ("title", "description")}
    labels["org.opencontainers.image.version"] = "unknown"
    wrong = checks.wrong_settings({"User": "root", "Labels": labels, "ExposedPorts": {"80": {}}})
    assert wrong == [
        "label licenses is missing",
        "label version is missing",
        "label revision is missing",
        "user root: not 65532:65532",
        "ports or volumes are declared; the chart says which there are",
    ]


def test_differences_are_of_content_mode_owner_and_time() -> None:
    first = [entry("a"), entry("b"), entry("c"), entry("same")]
    second = [entry("a", mode=0o600), entry("b", owner=(1, 1)), entry("d"), entry("same")]
    assert differences(first, second) == ["a", "b", "c", "d"]
    assert [each.path for each in added(second, first)] == ["a", "b", "d"]


def test_an_exported_file_system_is_read() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, data in {"opt/poolwise/x": b"1", "etc/hosts": b"2"}.items():
            member = tarfile.TarInfo(path)
            member.size, member.mtime, member.mode = len(data), 1_700_000_000, 0o4755
            archive.addfile(member, io.BytesIO(data))
    stream.seek(0)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        ours, other = read(archive)
    assert (ours.kind, ours.mode, ours.modified_seconds) == ("file", 0o4755, 1_700_000_000)
    assert ours.changes_user
    assert other.modified_seconds is None
    assert ours.content != other.content


def test_starts_are_reported_by_their_median() -> None:
    taken = [Start(wall, cpu) for wall, cpu in ((9.0, 1.0), (1.234, 1.2), (2.0, 1.1))]
    assert report(taken) == {
        "median_seconds": 2.0,
        "median_cpu_seconds": 1.1,
        "starts_seconds": [9.0, 1.23, 2.0],
    }
