module asset-registry/authsvc

go 1.26.0

require asset-registry/shared v0.0.0

replace asset-registry/shared => ../shared
