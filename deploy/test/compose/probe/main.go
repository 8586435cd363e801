// Command probe does nothing: deploy/test/compose/engine.sh runs it in a container
// to see whether containers run. It is static, so it needs no file but itself.
package main

func main() {}
