#!/bin/sh
# First stage of the Dockerfile: lay out in /rootfs what the image has beside its base.
# Two builds of the same commit on the same base give the same bytes, modes and times.
set -eu
export PYTHONDONTWRITEBYTECODE=1 # compiled once, below

site() { /opt/poolwise/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

install_packages() {
    python3 -m venv --without-pip /opt/poolwise
    pip="python3 -m pip --python /opt/poolwise/bin/python3 --disable-pip-version-check --no-cache-dir"
    install="$pip install --quiet --no-index --no-compile --root-user-action ignore --find-links /tmp/wheels"
    $install --require-hashes --requirement /tmp/runtime.txt
    $install --no-deps /tmp/wheels/poolwise-*.whl
    $pip check
}

# Nothing here is imported: tests that packages ship, and the generated models and API classes of
# the Kubernetes client (70 MB), which are loaded on first use. Poolwise uses the dynamic client.
remove_unused() {
    cd "$(site)"
    rm -r certifi/tests websocket/tests pendulum/testing
    find kubernetes iso8601 '(' -name '*_test.py' -o -name 'test_*.py' ')' -delete
    for generated in client/api client/models aio/client/api aio/client/models; do
        find "kubernetes/$generated" -name '*.py' ! -name __init__.py -delete
    done
    cd /opt/poolwise/bin
    find . -type f ! -name poolwise -delete
    sed -i '1s/$/ -IB/' poolwise # isolated, as the entry point is
}

# Unchecked: the interpreter trusts the compiled file without asking for its source's time.
# One process and a fixed seed: otherwise the order of constants in a file differs between builds.
compile_packages() {
    PYTHONHASHSEED=0 /opt/poolwise/bin/python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash "$(site)"
}

# A name for the user, since some libraries ask for one; only root may write the file.
add_user() {
    mkdir -p /rootfs/etc
    grep -v '^poolwise:' /etc/passwd > /rootfs/etc/passwd
    grep -v '^poolwise:' /etc/group > /rootfs/etc/group
    echo 'poolwise:x:65532:65532:Poolwise:/nonexistent:/usr/sbin/nologin' >> /rootfs/etc/passwd
    echo 'poolwise:x:65532:' >> /rootfs/etc/group
    chmod 644 /rootfs/etc/passwd /rootfs/etc/group
}

umask 022
install_packages
remove_unused
compile_packages
add_user
mkdir -p /rootfs/opt
mv /opt/poolwise /rootfs/opt/poolwise
chmod -R u=rwX,go=rX /rootfs
find /rootfs -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
