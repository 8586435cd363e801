module asset-registry/docs

go 1.26.0
