package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry.example/client"
)

func TestGoClientMeetsAHostileServer(t *testing.T) {
	h := newHostile(t, hostileCases())
	outcomes := map[string]string{}
	var mu sync.Mutex
	var calling sync.WaitGroup
	for _, c := range h.cases {
		calling.Go(func() {
			outcome := h.goOutcome(t, c)
			mu.Lock()
			defer mu.Unlock()
			outcomes[c.Name] = outcome
		})
	}
	calling.Wait()
	h.check(t, outcomes)
}

// goOutcome runs a case with the Go client, and returns the outcome.
func (h *hostile) goOutcome(t *testing.T, of hostileCase) string {
	config := client.Config{URL: h.url() + "/" + of.Name, Key: "broker", Timeout: time.Minute,
		Retry: client.Retry{Tries: 2}}
	if of.Hang {
		config.Timeout = time.Second
	}
	if of.Call == "follow" {
		config.Retry.Tries = 1
	}
	c, err := client.New(config)
	if err != nil {
		t.Error(err)
		return ""
	}
	title, err := goCall(t.Context(), c, of.Call)
	refusal, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return title
	case isRefusal:
		return fmt.Sprint("refused ", refusal.Status)
	case strings.Contains(err.Error(), "is not the registry's"), strings.Contains(err.Error(), "the answer has more than"),
		strings.Contains(err.Error(), "is not a page of the registry"):
		return "bad answer"
	}
	return "no answer"
}

// goCall makes the call that a case names.
func goCall(ctx context.Context, c *client.Client, call string) (string, error) {
	change := func() (string, error) {
		asset, err := c.Patch(ctx, "a", client.Fields{"title": "x"}, client.Write{Token: "token"})
		return asset.Title, err
	}
	switch call {
	case "get":
		asset, err := c.Get(ctx, "a")
		return asset.Title, err
	case "change":
		return change()
	case "pages":
		_, err := c.Page(ctx, client.Feed{})
		return "a page", err
	case "follow":
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, err := range c.Follow(ctx, client.Feed{Live: true}, time.Hour) {
			if ctx.Err() != nil {
				break
			}
			if client.StatusOf(err) != 503 {
				return "", err
			}
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		return "waits", nil
	case "restored":
		if _, err := c.Get(ctx, "a"); err != nil {
			return "", err
		}
		errs := make(chan error, changesAtOnce)
		for range changesAtOnce {
			go func() { _, err := change(); errs <- err }()
		}
		var all error
		for range changesAtOnce {
			all = errors.Join(all, <-errs)
		}
		return "found", all
	}
	return "", errors.New("there is no such call")
}
