package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
)

const (
	callTimeout = 60 * time.Second
	maxAnswer   = 64 << 20 // bytes
)

// Errors for requests that need an API key while no key is set.
var (
	errNoKey = errors.New("no API key: set REGISTRYCTL_KEY, or key in the config file (registryctl --help); " +
		"an operator of the registry makes keys with registryctl keys create")
	errNoAdminKey = errors.New("no API key for the admin API: set REGISTRYCTL_ADMIN_KEY, or admin-key in the " +
		"config file; registry admin-key, or authsvc admin-key, makes the first one")
)

// public returns a client of the public API. If withKey is true and no API key is set, it returns an error.
func (p *program) public(withKey bool) (*client.Client, error) {
	if withKey && p.Key == "" {
		return nil, errNoKey
	}
	return p.client(client.Retry{Tries: 4, Total: 15 * time.Second}, nil)
}

// client returns a client of the public API. A nil transport is the default one.
func (p *program) client(retry client.Retry, transport http.RoundTripper) (*client.Client, error) {
	return client.New(client.Config{
		URL: p.URL, Key: client.Secret(p.Key), UserAgent: "registryctl", Timeout: callTimeout, Retry: retry,
		Transport: transport,
	})
}

// send makes a request to the admin API and returns the body of the answer. For a status of 400 or more, the
// error has the registry's description. The argument `body` may be nil.
func send(ctx context.Context, method, address, key string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(key, "")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := httpclient.New(nil).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer ended early: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return text, nil
	}
	return nil, refusal(resp, text)
}

// refusal describes an answer of the admin API with an error status.
func refusal(resp *http.Response, text []byte) error {
	var answer struct{ Errors []fault.Detail }
	_ = json.Unmarshal(text, &answer) // if another server has answered, the list stays empty
	says := ""
	switch {
	case len(answer.Errors) == 0 && isAway(resp.StatusCode):
		says = "a server in front of the admin API answers " + resp.Status + ": it does not reach the admin API"
	case len(answer.Errors) == 0:
		says = "the server answers " + resp.Status + " and is not the admin API: check --admin-url"
	case resp.StatusCode == http.StatusNotFound && answer.Errors[0].Name == "not_found":
		says = "the server at --admin-url has no admin API: it may be the public address of the registry. " +
			"The admin API has an address of its own, by default http://127.0.0.1:8079"
	default:
		details := make([]string, len(answer.Errors))
		for i, d := range answer.Errors {
			details[i] = fmt.Sprintf("%s %s: %s", d.Location, d.Name, d.Description)
		}
		says = resp.Status + ": " + strings.Join(details, "; ")
	}
	return &statusError{resp.StatusCode, plain(says)}
}

// call calls the admin API. The argument `body` is sent as JSON; if it is nil, no body is sent.
func call[T any](ctx context.Context, p *program, method, path string, query url.Values, body any) (
	answer adminapi.Response[T], err error,
) {
	if p.AdminKey == "" {
		return answer, errNoAdminKey
	}
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(adminapi.Request[any]{Data: body}); err != nil {
			return answer, fmt.Errorf("encode request: %w", err)
		}
	}
	address := strings.TrimSuffix(p.AdminURL, "/") + adminapi.Prefix + path + "?" + query.Encode()
	text, err := send(ctx, method, address, p.AdminKey, encoded)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, errors.New("the answer is not the admin API's")
	}
	for _, warning := range answer.Warnings {
		if err := p.note("Warning: %s", warning); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

// The function `all` returns the entries of a list of the admin API, and reads it page by page. An error ends the
// sequence. It sets the parameter "after" in the argument `query`.
func all[T any](ctx context.Context, p *program, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := call[[]T](ctx, p, http.MethodGet, path, query, nil)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, entry := range page.Data {
				if !yield(entry, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

// gathered returns the entries of a list, which is not nil, or the error that ended it.
func gathered[T any](list iter.Seq2[T, error]) ([]T, error) {
	found := []T{}
	for entry, err := range list {
		if err != nil {
			return found, err
		}
		found = append(found, entry)
	}
	return found, nil
}
