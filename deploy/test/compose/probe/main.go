// Command probe does nothing. deploy/test/compose/engine.sh runs it in a container to
// find out whether containers work. It is static and needs no other file.
package main

func main() {}
