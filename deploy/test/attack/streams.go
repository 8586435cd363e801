package attack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"asset-registry/shared/randtest"
)

// Streams are streams of the feed that hostile clients open and never read.
type Streams struct {
	Clients int // number of clients; each has a different IP address
	Each    int // number of streams for each client
	Accept  string
	// Query returns the query parameters of a client's stream number n.
	Query func(client, n int) url.Values
}

// Hold opens streams and keeps them open until ctx is done. If the registry has closed a connection by then, the
// connection counts as cut off.
func (r *Registry) Hold(ctx context.Context, s Streams) *Outcome {
	return r.hold(ctx, s.Clients, s.Each, func(client, n int) (path, header string) {
		return "/api/2.5/assets?" + s.Query(client, n).Encode(), "Accept: " + s.Accept
	})
}

// hold sends requests and reads only the status of each answer. It keeps the connections open until ctx is done.
// The clients have different IP addresses. The parameter `each` is the number of requests of one client.
func (r *Registry) hold(
	ctx context.Context, clients, each int, ask func(client, n int) (path, header string),
) *Outcome {
	var o Outcome
	crowd(clients*each, func(i int) {
		path, header := ask(i/each, i%each)
		conn, status, err := r.open(ctx, i/each, path, header)
		if err != nil {
			if !hasEnded(ctx, err) {
				o.fail(err)
			}
			return
		}
		defer conn.Close()
		switch status {
		case http.StatusOK, http.StatusPartialContent:
			o.answered.Add(1)
			<-ctx.Done()
			if isClosed(conn) {
				o.cut.Add(1)
			}
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			o.refused.Add(1)
		default:
			o.fail(fmt.Errorf("got status %d, want 200, 206, 429 or 503", status))
		}
	})
	return &o
}

// open sends a request from the IP address of a client, and reads only the status of the answer.
func (r *Registry) open(ctx context.Context, client int, path, header string) (net.Conn, int, error) {
	conn, err := r.dialAs(ctx, client)
	if err != nil {
		return nil, 0, err
	}
	// An error does not matter: it means that conn is closed.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer stop()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: registry\r\n%s\r\n\r\n", path, header)
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, line); err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	status, err := strconv.Atoi(string(line[len("HTTP/1.1 "):]))
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, status, nil
}

// dialAs connects from the IP address of a client, with a small receive buffer.
func (r *Registry) dialAs(ctx context.Context, client int) (net.Conn, error) {
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+client%250))},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
			})
		},
	}
	return dialer.DialContext(ctx, "tcp", r.addr)
}

// hasEnded reports whether an error is due to the end of ctx. A call may notice the deadline of ctx a moment before
// ctx itself is done.
func hasEnded(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// isClosed reports whether the registry has closed a connection. To find out, it reads and discards everything that
// has arrived.
func isClosed(conn net.Conn) bool {
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return true
	}
	_, err := io.Copy(io.Discard, conn)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// DropPolls lets clients open long polls and disconnect after a few milliseconds, again and again until ctx is
// done.
func (r *Registry) DropPolls(ctx context.Context, clients int) *Outcome {
	var o Outcome
	crowd(clients, func(client int) {
		for ctx.Err() == nil {
			conn, err := r.dialAs(ctx, client)
			if err != nil {
				if !hasEnded(ctx, err) {
					o.fail(err)
				}
				return
			}
			soon := time.Now().Add(50 * time.Second).UTC().Format(time.RFC3339)
			query := url.Values{"wait": {"60"}, "offset": {soon}}
			_, err = fmt.Fprintf(conn, "GET /api/2.5/assets?%s HTTP/1.1\r\nHost: registry\r\n\r\n", query.Encode())
			if err == nil {
				o.answered.Add(1)
			}
			time.Sleep(randtest.N(10 * time.Millisecond))
			_ = conn.Close() // the registry may have closed it first
		}
	})
	return &o
}

// newest returns an offset at the end of the feed.
func (r *Registry) newest(ctx context.Context) (string, error) {
	text, err := r.write(ctx, http.MethodGet, "/api/2.5/assets?descending=1&limit=1", "", "")
	if err != nil {
		return "", err
	}
	var page struct {
		Data []struct{ DateModified string }
	}
	if err := json.Unmarshal(text, &page); err != nil || len(page.Data) == 0 {
		return "", fmt.Errorf("read the newest entry: got %.200s: %w", text, err)
	}
	return page.Data[0].DateModified, nil
}

// Metric reads a metric from the metrics address of a process, and returns the sum of its values. It returns 0 if
// the process does not have the metric.
func Metric(ctx context.Context, addr, name string) (sum float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		if own, _, _ := strings.Cut(key, "{"); own != name {
			continue
		}
		// The value is the text behind the last blank. There may be other blanks, because labels may contain blanks.
		if i := strings.LastIndexByte(value, ' '); i >= 0 {
			value = value[i+1:]
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %s: %w", name, err)
		}
		sum += number
	}
	return sum, lines.Err()
}
