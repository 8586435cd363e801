// Package traces checks the telemetry of the gateway, the asset service and the auth service together. One trace must
// cover these services and their stores, each service must have its metrics, and no secret may appear in logs, traces
// or metrics.
package traces
