// Package dictionary tests the rules for Ukrainian words against a dictionary (docs/search.md, "Words"). It is
// a separate package because the test needs the dictionary's files.
package dictionary
