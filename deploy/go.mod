module asset-registry/deploy

go 1.26.0

require (
	asset-registry/assetsvc v0.0.0
	asset-registry/authsvc v0.0.0
	asset-registry/gateway v0.0.0
	asset-registry/shared v0.0.0
)

require (
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
)

replace asset-registry/shared => ../shared

replace asset-registry/gateway => ../gateway

replace asset-registry/assetsvc => ../assetsvc

replace asset-registry/authsvc => ../authsvc
