// Package exports reads exported files of searches, and whole copies, with programs that others wrote. Python's csv and
// the library excelize read the files of searches. The recipes of docs/data.md load whole copies, and the libraries
// rdflib and jsonschema harvest them as a portal does. It is part of the module of tests that need libraries which our
// other code does not need.
package exports
