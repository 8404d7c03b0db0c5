#!/bin/sh
# Second stage of the Dockerfile: take the package installers out of the base.
# The running image installs nothing, and what is not there needs no security fixes.
set -eu

if dpkg --status python3-pip > /dev/null 2>&1; then # Debian's own Python
    dpkg --purge --force-depends $(dpkg-query --show --showformat '${Package}\n' \
        | grep -E '^python3(\.[0-9]+)?-(pip|setuptools|wheel|pkg-resources|venv)(-whl)?$') > /dev/null 2>&1
    rm -f /var/log/dpkg.log /var/log/alternatives.log /var/lib/dpkg/*-old
else # the official image's, in /usr/local
    python3 -m pip uninstall --quiet --yes --root-user-action ignore pip setuptools wheel
fi
rm -f "$0"
