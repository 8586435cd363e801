package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"syscall"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func TestWords(t *testing.T) {
	_, notNumber := strconv.Atoi("2MB")
	_, tooLarge := strconv.ParseInt("99999999999999999999", 10, 64)
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	_, badCertificate := http.Get(untrusted.URL)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	away := fault.New(fault.Unavailable, fault.URL, "key", "Repeat the request.")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a fault of our own", errors.New("--x must be 1"), "--x must be 1"},
		{"a fault twice", errors.Join(errors.New("a"), errors.New("b"), errors.New("a")), "a; b"},
		{"a number", fmt.Errorf("--x: %w", notNumber), `--x: "2MB" is not a number of the right form and size`},
		{"a large number", tooLarge, `"99999999999999999999" is not a number of the right form and size`},
		{"the end", fmt.Errorf("read x: %w", io.ErrUnexpectedEOF), "read x: it ends too early"},
		{"no JSON", fmt.Errorf("x: %w", json.Unmarshal([]byte("{"), new(any))), "x: it breaks off or has a fault near byte 1"},
		{"another JSON", json.Unmarshal([]byte("[1]"), new(map[string]int)), "a JSON value of the wrong kind (array) stands near byte 1"},
		{"a certificate", badCertificate, untrusted.URL + " does not answer: its certificate is not valid for the address"},
		{"a timeout", fmt.Errorf("ask: %w", late.Err()), "ask: no answer came in time"},
		{"a full disk", &os.PathError{Op: "write", Path: "/d/x.new123", Err: syscall.ENOSPC}, `"/d/x": the disk is full`},
		{"a closed file", &os.PathError{Op: "open", Path: "/x", Err: syscall.EACCES},
			`"/x": the system does not permit it to this user`},
		{"a fault for clients", fmt.Errorf("check: %w", away), "check: Repeat the request"},
		{"its cause", fmt.Errorf("check: %w", fmt.Errorf("%w: %w", away, syscall.ENOSPC)), "check: the disk is full"},
		{"servers of MongoDB", errors.New("ping: server selection error: context deadline exceeded, current topology: {}"),
			"ping: no server of MongoDB answers"},
		{"a password", fmt.Errorf("ask: %w", getError("ftp://u:hunter2@x")),
			"ask: an address must be such as https://HOST or http://HOST:PORT"},
		{"a password in a path", &os.PathError{Op: "open", Path: "https://u:hunter2@h/x", Err: syscall.ENOENT},
			`"https://***@h/x": there is no such file or folder`},
		{"control characters", errors.New("a\u001b[31m\u009b\u202e\u2066\u061c\u2028b\nc"), "a?[31m?????b; c"},
	} {
		expect.Equal(t, Words(c.err), c.want, "%s", c.name)
	}
}

// getError returns the error of a request to an address.
func getError(address string) error {
	_, err := http.Get(address)
	return err
}
