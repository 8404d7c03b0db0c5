#!/bin/sh
# First stages of the Dockerfile: lay out in /rootfs what the image has beside its base.
#
#   install.sh dependencies    the locked packages; a layer that changes with the lock alone
#   install.sh poolwise        Poolwise itself; the small layer that a new version brings
#
# Two builds of the same commit on the same base give the same bytes, modes and times.
set -eu
umask 022
export PYTHONDONTWRITEBYTECODE=1 # compiled once, by compile_packages

HOME_PATH=/opt/poolwise
PYTHON=$HOME_PATH/bin/python3
pip="python3 -m pip --python $PYTHON --disable-pip-version-check --no-cache-dir"
install="$pip install --quiet --no-index --no-compile --root-user-action ignore"

site() { $PYTHON -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# Nothing here is imported: tests that packages ship, and the generated models and API classes of
# the Kubernetes client (70 MB), which are loaded on first use. Poolwise uses the dynamic client.
remove_unused() {
    cd "$(site)"
    rm -r certifi/tests websocket/tests pendulum/testing
    find kubernetes iso8601 '(' -name '*_test.py' -o -name 'test_*.py' ')' -delete
    for generated in client/api client/models aio/client/api aio/client/models; do
        find "kubernetes/$generated" -name '*.py' ! -name __init__.py -delete
    done
    find $HOME_PATH/bin -type f -delete # commands of packages, and `activate`
}

# Unchecked: the interpreter trusts the compiled file without asking for its source's time.
# One process and a fixed seed: otherwise the order of constants in a file differs between builds.
compile_packages() {
    PYTHONHASHSEED=0 $PYTHON -m compileall -q -j 1 --invalidation-mode unchecked-hash "$@"
}

# A name for the user, since some libraries ask for one; only root may write the file.
add_user() {
    mkdir -p /rootfs/etc
    grep -v '^poolwise:' /etc/passwd > /rootfs/etc/passwd
    grep -v '^poolwise:' /etc/group > /rootfs/etc/group
    echo 'poolwise:x:65532:65532:Poolwise:/nonexistent:/usr/sbin/nologin' >> /rootfs/etc/passwd
    echo 'poolwise:x:65532:' >> /rootfs/etc/group
}

# The same modes and times, whoever builds and whenever.
settle() {
    chmod -R u=rwX,go=rX /rootfs
    find /rootfs -exec touch --no-dereference --date "@$1" {} +
}

dependencies() {
    python3 -m venv --without-pip $HOME_PATH
    $install --find-links /tmp/wheels --require-hashes --requirement /tmp/runtime.txt
    remove_unused
    compile_packages "$(site)"
    add_user
    mkdir -p /rootfs/opt
    cp -a $HOME_PATH /rootfs/opt/
    settle 315532800 # 1980, the first time that a zip file can tell
}

poolwise() {
    $install --no-deps /tmp/own/poolwise-*.whl
    $pip check
    cd "$(site)"
    compile_packages poolwise
    sed -i '1s/$/ -IB/' $HOME_PATH/bin/poolwise # isolated, as the entry point is
    rm -rf /rootfs
    mkdir -p "/rootfs$(site)" /rootfs$HOME_PATH/bin
    cp -a poolwise poolwise-*.dist-info "/rootfs$(site)/"
    cp -a $HOME_PATH/bin/poolwise /rootfs$HOME_PATH/bin/
    settle "$SOURCE_DATE_EPOCH"
}

"$1"
