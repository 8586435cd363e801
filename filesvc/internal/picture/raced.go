//go:build race

package picture

// raced is true in a program with the race detector. The detector needs more memory and time than a child may have.
const raced = true
