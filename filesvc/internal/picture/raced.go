//go:build race

package picture

// raced tells that the race detector takes more memory and time than a child may have.
const raced = true
