// Package exports reads the files of a search with programs that others wrote: Python's csv and the library
// excelize. It is in the module of tests that need libraries which nothing else of ours uses.
package exports
