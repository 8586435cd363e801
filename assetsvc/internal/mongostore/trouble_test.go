package mongostore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// duplicates returns the answer to a write whose document exists already.
func duplicates(more ...bson.E) bson.D {
	return accepted(append(more, bson.E{Key: "n", Value: 0}, bson.E{Key: "nModified", Value: 0},
		bson.E{Key: "writeErrors", Value: bson.A{bson.D{
			{Key: "index", Value: 0}, {Key: "code", Value: duplicateKey}, {Key: "errmsg", Value: "E11000 duplicate key"},
		}}})...)
}

// noMajority returns the error of a write that was sent, but was not acknowledged by a majority in time.
func noMajority(code int32) bson.E {
	why := bson.D{{Key: "code", Value: code}, {Key: "errmsg", Value: "no majority"}}
	return bson.E{Key: "writeConcernError", Value: why}
}

// creations are all operations for which "the document exists already" is a result, and not an error.
var creations = []struct {
	name string
	do   func(context.Context, *database) error
}{
	{"note", func(ctx context.Context, d *database) error { return d.note(ctx, batchRecord{ID: "w/1"}) }},
	{"the clock", func(ctx context.Context, d *database) error { return d.createClock(ctx, newClock()) }},
	{"an asset", func(ctx context.Context, d *database) error {
		write := feed.Write{ID: "a", Document: registry.Record{}}
		_, err := feedStore{d}.apply(ctx, []feed.Write{write})
		return err
	}},
	{"an imported change", func(ctx context.Context, d *database) error {
		return d.addRecords(ctx, []any{batchRecord{ID: "import/1"}})
	}},
	{"a part of the log", func(ctx context.Context, d *database) error { return d.addParts(ctx, []translog.Part{{}}) }},
	{"the first head of the log", func(ctx context.Context, d *database) error {
		_, err := d.replaceHead(ctx, logHead{Version: 1})
		return err
	}},
	{"the sender", func(ctx context.Context, d *database) error { return d.createSender(ctx) }},
	{"a webhook", func(ctx context.Context, d *database) error {
		if err := d.insertHook(ctx, hook{ID: "h"}); !errors.Is(err, webhook.ErrStale) {
			return err
		}
		return nil
	}},
}

// TestADuplicateWithoutAMajorityIsNoProof has a primary without a majority, which answers that a document exists.
// Each operation must fail, because the document may be rolled back.
func TestADuplicateWithoutAMajorityIsNoProof(t *testing.T) {
	for _, c := range creations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the driver waits for a second after an error with code 189
			p, d := scripted(t)
			for _, code := range []int32{0, 64, 50, 189} {
				p.answers(func(asked command) bson.D {
					switch written := asked.body[0]; {
					case written.Key == "hello":
						return nil
					case code == 0:
						return duplicates()
					default:
						return duplicates(noMajority(code))
					}
				})
				if err := c.do(t.Context(), d); (err != nil) != (code != 0) {
					t.Errorf("error %d of the write concern: got %v, want an error: %v", code, err, code != 0)
				}
			}
		})
	}
}

// TestALostDocumentIsAnError has a primary that has lost documents which it acknowledged. Updates of these
// documents match nothing, and must fail.
func TestALostDocumentIsAnError(t *testing.T) {
	p, d := scripted(t)
	p.answers(func(c command) bson.D {
		switch c.body[0].Key {
		case "update":
			return accepted(bson.E{Key: "n", Value: 0}, bson.E{Key: "nModified", Value: 0})
		case "find":
			return found(bson.D{{Key: "_id", Value: "w/1"}, {Key: "at", Value: int64(1)}, {Key: "ids", Value: bson.A{}}})
		}
		return nil
	})
	expect.Err(t, d.show(t.Context(), "w/1"), errNoRecord, "show")
	expect.ErrOf(t, errNoRecord, "settle")((feedStore{d}).Settle(t.Context(), "w", 1))
	expect.Fails(t, (feedStore{d}).Fence(t.Context(), []string{"a"}), "fence")
}

// TestReadsWaitOnlyForWhatAMajorityHas simulates a primary that has written up to time 100, while most members
// have only time 10. A read that asks for a later time than 10 gets no answer before its timeout. After each
// operation, a read must get an answer, so it must not ask for a later time.
func TestReadsWaitOnlyForWhatAMajorityHas(t *testing.T) {
	const majority, written = 10, 100
	clockDocument := bson.D{{Key: "_id", Value: clockID}, {Key: "last", Value: int64(7)}}
	answer := func(c command) bson.D {
		switch c.body[0].Key {
		case "hello":
			return nil
		case "find", "aggregate":
			if c.after > majority {
				return at(written, refusal(timeExpired, "operation exceeded time limit"))
			}
			return at(majority, found(clockDocument))
		case "killCursors":
			return at(written, accepted())
		}
		return at(written, accepted(bson.E{Key: "n", Value: 1}, noMajority(64)))
	}
	for _, c := range []struct {
		name   string
		answer func(c command) bson.D // nil: the usual answer
		do     func(context.Context, *database) error
		fails  bool
	}{
		{"a write without a majority", nil, func(ctx context.Context, d *database) error {
			return d.note(ctx, batchRecord{ID: "w/1"})
		}, true},
		{"a duplicate without a majority", func(c command) bson.D {
			if c.body[0].Key == "insert" {
				return at(written, duplicates(noMajority(64)))
			}
			return nil
		}, func(ctx context.Context, d *database) error { return d.note(ctx, batchRecord{ID: "w/1"}) }, true},
		{"a failed read", func(c command) bson.D {
			if c.body[0].Key == "find" {
				return at(written, refusal(timeExpired, "operation exceeded time limit"))
			}
			return nil
		}, func(ctx context.Context, d *database) error { return readLast(ctx, d) }, true},
		{"hello", nil, func(ctx context.Context, d *database) error {
			_, err := newStoreTime(time.Now, func() []time.Time { return nil }, nil).measure(ctx, d, 0)
			return err
		}, false},
		{"a cursor that is closed early", func(c command) bson.D {
			if c.body[0].Key == "find" && c.body[0].Value == "changes" {
				record := func(at int64) bson.D {
					change := bson.D{{Key: "a", Value: bson.D{{Key: "p", Value: at}}}}
					return bson.D{{Key: "_id", Value: fmt.Sprint(at)}, {Key: "at", Value: at}, {Key: "c", Value: change}}
				}
				open := found(record(1), record(2))
				open[1].Value.(bson.D)[0].Value = int64(99)
				return at(majority, open)
			}
			return nil
		}, func(ctx context.Context, d *database) error {
			return d.do(ctx, func(ctx context.Context) error {
				_, err := d.readRecord(ctx, registry.ChangesQuery{Limit: 1, Bytes: registry.AnySize}, 7)
				return err
			})
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := scripted(t)
			p.answers(func(asked command) bson.D {
				if c.answer != nil {
					if special := c.answer(asked); special != nil {
						return special
					}
				}
				if asked.body[0].Key == "hello" {
					return at(written, p.hello())
				}
				return answer(asked)
			})
			if err := readLast(t.Context(), d); err != nil && c.name != "a failed read" {
				t.Fatal(err)
			}
			if err := c.do(t.Context(), d); (err != nil) != c.fails {
				t.Errorf("got %v, want an error: %v", err, c.fails)
			}
			p.answers(answer)
			if err := readLast(t.Context(), d); err != nil {
				t.Errorf("a read afterwards: got %v, want an answer", err)
			}
		})
	}
}

// TestAReadFollowsWhatTheProcessHasSeen sends commands that are acknowledged. Later reads must ask for a state
// after the times of these commands.
func TestAReadFollowsWhatTheProcessHasSeen(t *testing.T) {
	p, d := scripted(t)
	var now uint32
	p.answers(func(c command) bson.D {
		now++
		if c.body[0].Key == "find" {
			return at(now, found(bson.D{{Key: "_id", Value: clockID}}))
		}
		return at(now, accepted(bson.E{Key: "n", Value: 1}))
	})
	for _, do := range []func() error{
		func() error { return d.note(t.Context(), batchRecord{ID: "w/1"}) },
		func() error { return d.show(t.Context(), "w/1") },
		func() error { return readLast(t.Context(), d) },
	} {
		expect.OK(t, do())
		before := now
		expect.OK(t, readLast(t.Context(), d))
		reads := p.named("find")
		expect.Equal(t, reads[len(reads)-1].after, before, "a read after time")
	}
}

func readLast(ctx context.Context, d *database) error {
	return d.do(ctx, func(ctx context.Context) error {
		_, err := d.readClock(ctx, horizonFields)
		return err
	})
}
