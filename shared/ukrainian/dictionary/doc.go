// Package dictionary tests the rules for Ukrainian words against a dictionary (docs/search.md,
// "Words"). It is a package of its own because the test needs the dictionary's files.
package dictionary
