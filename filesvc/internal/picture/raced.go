//go:build race

package picture

// raced says that the program has the race detector, which needs more memory and time than a child may have.
const raced = true
