# syntax=docker/dockerfile:1

# DuckDB is C++ behind cgo: the build needs the compilers that the golang image has, and
# the runtime image a C library that is not older than the build's. Both are bookworm.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make build

FROM debian:bookworm-slim
# curl is for the health check; zone data for queries that name a time zone.
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates curl libstdc++6 tzdata && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --system --uid 10001 --create-home --home-dir /var/lib/catalogd catalogd && \
    install -d -o catalogd -g catalogd /var/lib/catalogd/warehouse
COPY --from=build /src/bin/catalogd /usr/local/bin/catalogd
COPY LICENSE /usr/share/doc/catalogd/LICENSE
USER catalogd
WORKDIR /var/lib/catalogd
# Inside a container every interface is the container's own.
ENV CATALOGD_LISTEN=0.0.0.0:8181 \
    CATALOGD_WAREHOUSE=file:///var/lib/catalogd/warehouse
EXPOSE 8181
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["curl", "--fail", "--silent", "--show-error", "http://127.0.0.1:8181/readyz"]
ENTRYPOINT ["catalogd"]
CMD ["serve"]
