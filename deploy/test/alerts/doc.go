// Package alerts tests what watches the registry: that rules, alerts and
// dashboards hang together, that every metric and label that they name is told
// by the services or recorded by a rule, and that traces and metrics come
// through the collector, by starting all of them.
//
// It is a module of its own for what only it needs: Prometheus's parser. The rules
// themselves are tested by promtool (make test-alerts).
package alerts
