// Package exports reads the exported files of searches with programs that others wrote: Python's csv, and the
// library excelize. It is part of the module of tests that need libraries which our other code does not need.
package exports
