// Package alerts tests the monitoring of the registry. Rules, alerts, dashboards and the runbook must fit together.
// Every metric and label that they use must be exported by a service or recorded by a rule. Traces and metrics must
// pass through the collector. For that, the tests start all services and a collector.
//
// The package is a separate module, because only these tests need Prometheus's parser. The rules themselves are
// tested with promtool (make test-alerts).
package alerts
