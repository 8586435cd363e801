package httpserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestARequestsContextBehavesLikeOneOfPackageContext(t *testing.T) {
	type end struct {
		err      error
		at       time.Duration // when the context ended
		deadline bool
	}
	// Each case runs with our context and with one of package context.
	for name, c := range map[string]struct {
		left, parent time.Duration // 0: no deadline
		finish       time.Duration // when the request is answered; 0: never
		leave        time.Duration // when the client leaves; 0: never
	}{
		"deadline":                {left: 2 * time.Second},
		"earlier end of parent":   {left: 3 * time.Second, parent: time.Second},
		"later end of parent":     {left: time.Second, parent: 3 * time.Second},
		"only an end of parent":   {parent: time.Second},
		"answered":                {left: 3 * time.Second, finish: time.Second},
		"answered, no deadline":   {finish: time.Second},
		"client leaves":           {left: 3 * time.Second, leave: time.Second},
		"client leaves, no limit": {leave: time.Second},
	} {
		// The ways in which somebody can notice that the context has ended.
		for how, wait := range map[string]func(context.Context) error{
			"done": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"err": func(ctx context.Context) error {
				for ctx.Err() == nil {
					time.Sleep(7 * time.Millisecond) // so that no check happens at the moment at which the context ends
				}
				return ctx.Err()
			},
			"child": func(ctx context.Context) error {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				<-child.Done()
				return child.Err()
			},
			"cause": func(ctx context.Context) error {
				for context.Cause(ctx) == nil && ctx.Err() == nil {
					time.Sleep(7 * time.Millisecond) // so that no check happens at the moment at which the context ends
				}
				return context.Cause(ctx)
			},
			"after": func(ctx context.Context) error {
				ended := make(chan struct{})
				context.AfterFunc(ctx, func() { close(ended) })
				<-ended
				return ctx.Err()
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				run := func(ours bool) (e end) {
					synctest.Test(t, func(t *testing.T) {
						parent, leave := context.WithCancel(context.Background())
						defer leave()
						if c.parent > 0 {
							var cancel context.CancelFunc
							parent, cancel = context.WithTimeout(parent, c.parent)
							defer cancel()
						}
						ctx, finish := usual(parent, c.left)
						if ours {
							own := &requestContext{Context: parent}
							if c.left > 0 {
								own.end = time.Now().Add(c.left)
							}
							ctx, finish = own, own.finish
						}
						defer finish()
						began := time.Now()
						if c.finish > 0 {
							time.AfterFunc(c.finish, finish)
						}
						if c.leave > 0 {
							time.AfterFunc(c.leave, leave)
						}
						_, e.deadline = ctx.Deadline()
						e.err = wait(ctx)
						e.at = time.Since(began)
					})
					return e
				}
				expect.Equal(t, run(true), run(false), "")
			})
		}
	}
}

// The function `usual` returns a context of package context that ends as a requestContext should.
func usual(parent context.Context, left time.Duration) (context.Context, context.CancelFunc) {
	if left == 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, left)
}

func TestARequestsContextKnowsIdAndValues(t *testing.T) {
	type key struct{}
	ctx := &requestContext{Context: context.WithValue(context.Background(), key{}, "v"), id: "r1"}
	defer ctx.finish()
	for _, when := range []string{"at first", "with a child"} {
		expect.Equal(t, RequestID(ctx), "r1", "%s: id", when)
		expect.Equal(t, ctx.Value(key{}), "v", "%s: value", when)
		_ = ctx.Done()
	}
}

func TestAnAnsweredRequestsContextHasEndedForAll(t *testing.T) {
	ctx := &requestContext{Context: context.Background(), end: time.Now().Add(time.Hour)}
	ctx.finish()
	expect.Err(t, ctx.Err(), context.Canceled, "")
	<-ctx.Done()
}
