// Package traces checks the telemetry of all services together: one trace covers every
// service and store, each service has its metrics, and no secret is in logs, traces or
// metrics.
package traces
