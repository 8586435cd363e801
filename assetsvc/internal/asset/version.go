package asset

import (
	"strconv"
	"strings"
)

// Version is the name of a version of the API, such as "2.5". The zero value
// stands for the newest version, which has every field.
type Version string

// The method `before` reports whether the version v is older than the version `since`, in which a field was added.
// If `since` is "", all versions have the field, and the result is false.
func (v Version) before(since Version) bool {
	if v == "" || since == "" {
		return false
	}
	major, minor := v.numbers()
	sinceMajor, sinceMinor := since.numbers()
	return major < sinceMajor || major == sinceMajor && minor < sinceMinor
}

// numbers returns the two numbers of a version. Versions are compared by these numbers, because 2.10 is newer than
// 2.9.
func (v Version) numbers() (major, minor int) {
	first, second, _ := strings.Cut(string(v), ".")
	major, _ = strconv.Atoi(first) // cannot fail: a test checks every version of the field table
	minor, _ = strconv.Atoi(second)
	return major, minor
}
