# The operator's image. Built by `make image` (python -m e2e.image), which first puts the wheels of the
# locked dependencies, for this base's Python, and of Poolwise itself into build/wheels: the build
# needs no network. It works with BuildKit and with the older builder alike.
#
# BASE is any glibc image with python3 3.11 or newer. The default is the newest Python that all locked
# dependencies have wheels for; by tag, so that `make image` gets its security fixes. A release pins
# it by digest: make image BASE=python:3.14-slim@sha256:...
ARG BASE=python:3.14-slim

FROM ${BASE} AS dependencies
COPY build/wheels /tmp/wheels
COPY e2e/image/install.sh requirements/runtime.txt /tmp/
RUN sh /tmp/install.sh dependencies

FROM dependencies AS poolwise
ARG SOURCE_DATE_EPOCH=0
COPY build/own /tmp/own
RUN sh /tmp/install.sh poolwise

FROM ${BASE}
COPY e2e/image/strip.sh /tmp/
RUN sh /tmp/strip.sh
COPY --from=dependencies /rootfs/ /
COPY --from=poolwise /rootfs/ /

ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=
LABEL org.opencontainers.image.title="poolwise" \
      org.opencontainers.image.description="A Kubernetes operator that puts AI workloads on the node pool that fits them" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

ENV PATH=/opt/poolwise/bin:/usr/local/bin:/usr/bin:/bin
USER 65532:65532
WORKDIR /
# -I: neither the environment nor the working directory adds code. -B: the root file system is
# read-only, and everything was compiled when the image was built.
ENTRYPOINT ["/opt/poolwise/bin/python3", "-IB", "-m", "poolwise"]
CMD ["run"]
