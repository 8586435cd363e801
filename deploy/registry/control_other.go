//go:build !linux

package registry

import (
	"context"
	"errors"
	"net"
)

// listenControl returns an error. The registry knows only Linux's way to learn the user of a connection.
func listenControl(context.Context, string) (net.Listener, error) {
	return nil, errors.New("this system does not tell which user opens the control socket")
}
