// Package releases tests the files of a release, and two versions beside each other
// (docs/versions.md).
package releases
