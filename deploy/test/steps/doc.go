// Package steps counts the steps that the programs take for hostile texts. The programs are compiled with the counters
// of Go's coverage, in our packages and in those of the standard library that work on texts. So a loop over a client's
// text whose work grows with the square of the text is found, wherever it is.
package steps
