// Package traces checks what the services tell of themselves together: one
// trace through all of them and their stores, metrics of each, and no secret in
// any of it.
package traces
