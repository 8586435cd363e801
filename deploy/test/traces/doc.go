// Package traces checks the telemetry of all services together. One trace must cover every service and store, each
// service must have its metrics, and no secret may appear in logs, traces or metrics.
package traces
