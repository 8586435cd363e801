package attack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"asset-registry/shared/sleep"
)

const (
	formType = "multipart/form-data; boundary=b"
	fileHead = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n"
	formEnd  = "\r\n--b--\r\n"
)

// upload sends a body to /upload, and returns the answer. It returns status 0 if the registry had read enough, and
// closed the connection before the whole body was sent.
func (r *Registry) upload(ctx context.Context, body io.Reader) (status int, text []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/upload", body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", formType)
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return 0, []byte(err.Error())
	}
	return resp.StatusCode, text
}

// keep uploads a file of zeros, and returns the path at which everybody can read it.
func (r *Registry) keep(ctx context.Context, size int) (path string, err error) {
	status, text := r.upload(ctx, strings.NewReader(fileHead+strings.Repeat("\x00", size)+formEnd))
	var got struct {
		GetURL string `json:"get_url"`
	}
	if err := json.Unmarshal(text, &got); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("upload: got %d %.200s", status, text)
	}
	_, path, _ = strings.Cut(got.GetURL, r.addr)
	return path, nil
}

// Upload lets clients send bodies until ctx is done. The parameter `body` is a function that makes the body of each
// request. Each answer must have one of the given statuses, or refuse the upload with 429 or 503.
func (r *Registry) Upload(ctx context.Context, clients int, body func() io.Reader, statuses ...int) *Outcome {
	var o Outcome
	crowd(clients, func(int) {
		for ctx.Err() == nil {
			status, text := r.upload(ctx, body())
			switch {
			case ctx.Err() != nil:
			case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
				o.refused.Add(1)
				sleep.For(ctx, 20*time.Millisecond)
			case status == 0:
				o.cut.Add(1)
			case bytes.Contains(fmt.Append(nil, statuses), fmt.Append(nil, status)):
				o.answered.Add(1)
			default:
				o.fail(fmt.Errorf("got %d %.200s", status, text))
			}
		}
	})
	return &o
}

// UploadSlowly lets clients announce a file of 8 MB and send it at one KiB per second, until the registry ends the
// upload or ctx is done.
func (r *Registry) UploadSlowly(ctx context.Context, clients int) *Outcome {
	var o Outcome
	crowd(clients, func(int) {
		if err := r.uploadSlowly(ctx, &o); err != nil && ctx.Err() == nil {
			o.cut.Add(1)
		}
	})
	return &o
}

func (r *Registry) uploadSlowly(ctx context.Context, o *Outcome) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, err = fmt.Fprintf(conn, "POST /upload HTTP/1.1\r\nHost: registry\r\nAuthorization: Basic YnJva2VyOg==\r\n"+
		"Content-Type: %s\r\nContent-Length: 8000000\r\n\r\n%s", formType, fileHead)
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- o.answerTo(conn) }()
	part := make([]byte, 1<<10)
	for sleep.For(ctx, time.Second) {
		select {
		case err := <-answered:
			return err
		default:
		}
		if _, err := conn.Write(part); err != nil {
			return <-answered
		}
	}
	return nil
}

// errSlow means that the registry ended an upload because it was too slow.
var errSlow = errors.New("the body did not arrive in time")

// answerTo reads and counts the answer to an upload that never ends.
func (o *Outcome) answerTo(conn net.Conn) error {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		o.refused.Add(1)
		return nil
	case resp.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("did not arrive in time")):
		return errSlow
	}
	o.fail(fmt.Errorf("got %d %.200s", resp.StatusCode, text))
	return nil
}
