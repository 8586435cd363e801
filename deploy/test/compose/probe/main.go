// Command probe does nothing. deploy/test/compose/engine.sh runs it in a container to find out whether containers
// work here. It is static, so it needs no other file.
package main

func main() {}
