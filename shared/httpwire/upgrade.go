package httpwire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrUnsupported is returned by Upgrade for a server that does not take the protocol.
var ErrUnsupported = errors.New("the server does not know the protocol")

// Upgrade asks the server at the other end of conn to change to a protocol (RFC 9110, 7.8).
// The request has the fields of header too. The reader holds what was read of conn after
// the answer. After an error the caller closes conn.
func Upgrade(
	ctx context.Context, conn net.Conn, host, target, protocol string, header http.Header,
) (*bufio.Reader, error) {
	release := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer release()
	const head = "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
	request := fmt.Appendf(nil, head, target, host, protocol)
	for name, values := range header {
		request = AppendField(request, name, values)
	}
	if _, err := conn.Write(append(request, "\r\n"...)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != protocol {
		return nil, fmt.Errorf("%w %s: it answered %d", ErrUnsupported, protocol, resp.StatusCode)
	}
	return r, nil
}
