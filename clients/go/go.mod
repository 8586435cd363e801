module asset-registry.example/client

go 1.26.0
