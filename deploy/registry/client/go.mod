module asset-registry/deploy/registry/client

go 1.26.0
