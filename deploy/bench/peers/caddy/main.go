// Command caddy is the web server Caddy with its standard modules. deploy/bench/gateway
// compares the gateway with it.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() { caddycmd.Main() }
