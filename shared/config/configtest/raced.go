//go:build race

package configtest

// raced is true in a program with the race detector. It is slow, so a quarter of the values is tried there.
const raced = true
