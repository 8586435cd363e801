// Package generators generates clients from the OpenAPI document with generators that others wrote. It compiles the
// clients, and runs the same scenario with each.
package generators
