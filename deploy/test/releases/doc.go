// Package releases tests the files of a release, and how two versions work together (docs/versions.md).
package releases
