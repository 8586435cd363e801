module asset-registry/gateway

go 1.26.0

require asset-registry/shared v0.0.0

replace asset-registry/shared => ../shared
