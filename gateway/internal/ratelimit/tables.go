package ratelimit

import "asset-registry/shared/routes"

// Limits of the bytes that a tenant writes, in production and in a sandbox. A write costs writeBytes in addition to
// the bytes of its body, because even the smallest write takes writeBytes on disk.
const (
	writeBytes     = 4 << 10
	bytesPerMinute = 100 << 20
	bytesPerDay    = 1 << 30
)

// Limits of the bytes of files that a tenant uploads, in production and in a sandbox.
const (
	fileBytesPerHour = 2 << 30
	fileBytesPerDay  = 20 << 30
)

// The function `one` returns the costs of a policy that counts only one class.
func one(class Class) map[Class]int64 { return map[Class]int64{class: 1} }

// weighted returns the costs of the policy that counts all requests of a tenant.
func weighted() map[Class]int64 {
	return map[Class]int64{routes.List: 5, routes.Own: 5, routes.Read: 1, routes.Write: 5}
}

// tenantBytes returns the policy that limits the bytes which a tenant writes.
func tenantBytes() Policy {
	return Policy{
		"tenant-bytes", ByTenant, map[Class]int64{routes.Write: writeBytes, Bytes: 1},
		map[string]int64{"1m": bytesPerMinute, "24h": bytesPerDay},
	}
}

// fileBytes returns the policy that limits the bytes of files which a tenant uploads.
func fileBytes() Policy {
	return Policy{
		"file-bytes", ByTenant, one(FileBytes), map[string]int64{"1h": fileBytesPerHour, "24h": fileBytesPerDay},
	}
}

// Production returns the policies of a registry in production.
func Production() Table {
	return Table{
		{"address-list", ByAddress, one(routes.List), map[string]int64{"1s": 100, "1m": 3_000}},
		{"address-own", ByAddress, one(routes.Own), map[string]int64{"1s": 20, "1m": 600}},
		{"address-read", ByAddress, one(routes.Read), map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"address-write", ByAddress, one(routes.Write), map[string]int64{"1s": 50, "1m": 600}},
		{"address-failed", ByAddress, one(Failed), map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, one(routes.List), map[string]int64{"1s": 100, "1m": 3_000}},
		{"key-own", ByKey, one(routes.Own), map[string]int64{"1s": 20, "1m": 600}},
		{"key-read", ByKey, one(routes.Read), map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"key-write", ByKey, one(routes.Write), map[string]int64{"1s": 200, "1m": 6_000}},
		{"tenant", ByTenant, weighted(), map[string]int64{"1s": 2_000, "1m": 60_000}},
		tenantBytes(),
		fileBytes(),
	}
}

// Sandbox returns the policies of a registry in which brokers test their programs.
func Sandbox() Table {
	return Table{
		{"address-list", ByAddress, one(routes.List), map[string]int64{"1s": 50, "1m": 1_000}},
		{"address-own", ByAddress, one(routes.Own), map[string]int64{"1s": 10, "1m": 300}},
		{"address-read", ByAddress, one(routes.Read), map[string]int64{"1s": 200, "1m": 5_000}},
		{"address-write", ByAddress, one(routes.Write), map[string]int64{"1s": 20, "1m": 300}},
		{"address-failed", ByAddress, one(Failed), map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, one(routes.List), map[string]int64{"1s": 50, "1m": 1_000}},
		{"key-own", ByKey, one(routes.Own), map[string]int64{"1s": 10, "1m": 300}},
		{"key-read", ByKey, one(routes.Read), map[string]int64{"1s": 200, "1m": 5_000}},
		{"key-write", ByKey, one(routes.Write), map[string]int64{"1s": 50, "1m": 1_000}},
		{"tenant", ByTenant, weighted(), map[string]int64{"1s": 400, "1m": 10_000}},
		tenantBytes(),
		fileBytes(),
	}
}
