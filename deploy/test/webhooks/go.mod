module asset-registry/deploy/test/webhooks

go 1.26.0

require (
	asset-registry/deploy v0.0.0
	asset-registry/shared v0.0.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	golang.org/x/mod v0.42.0 // indirect
)

replace (
	asset-registry.example/client => ../../../clients/go
	asset-registry/assetsvc => ../../../assetsvc
	asset-registry/authsvc => ../../../authsvc
	asset-registry/deploy => ../..
	asset-registry/gateway => ../../../gateway
	asset-registry/searchsvc => ../../../searchsvc
	asset-registry/shared => ../../../shared
)
