// Package generators generates clients from the OpenAPI document with the generators of others,
// compiles them, and runs one scenario with each.
package generators
