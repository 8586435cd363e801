package mongostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/errs"
)

// hook is the stored form of a webhook.Endpoint.
type hook struct {
	ID         string    `bson:"_id"`
	Place      string    `bson:"place,omitempty"` // "": an administrator's webhook, or an imported one
	Broker     string    `bson:"broker"`
	ByAdmin    bool      `bson:"byAdmin"`
	KeyID      string    `bson:"key"`
	URL        string    `bson:"url"`
	Version    string    `bson:"version"`
	Mode       string    `bson:"mode"`
	Whole      bool      `bson:"whole"`
	Filters    string    `bson:"filters,omitempty"`
	Seal       string    `bson:"seal"`
	OldSeal    string    `bson:"oldSeal"`
	OldUntil   time.Time `bson:"oldUntil"`
	Created    time.Time `bson:"created"`
	Request    string    `bson:"request,omitempty"`
	Same       string    `bson:"same,omitempty"`
	Generation int64     `bson:"generation"`
	Saves      int64     `bson:"saves"`
	Term       int64     `bson:"term"` // term of the sender that saved the progress last
	Progress   progress  `bson:"progress"`
}

// progress is the stored form of a webhook.Progress.
type progress struct {
	Position  int64          `bson:"position"`
	State     webhook.State  `bson:"state"`
	Reason    webhook.Reason `bson:"reason"`
	Verified  bool           `bson:"verified"`
	Failures  int            `bson:"failures"`
	FailedAt  time.Time      `bson:"failedAt"`
	LastError string         `bson:"lastError"`
	Next      time.Time      `bson:"next"`
	Succeeded time.Time      `bson:"succeeded"`
}

func hookOf(e webhook.Endpoint) hook {
	return hook{
		ID: e.ID, Broker: e.Broker, ByAdmin: e.ByAdmin, KeyID: e.KeyID, URL: e.URL, Version: e.Version, Mode: e.Mode,
		Whole: e.Whole, Filters: e.Filters, Seal: e.Seal, OldSeal: e.OldSeal, OldUntil: e.OldUntil, Created: e.Created,
		Request: e.Request, Same: e.Same, Generation: e.Generation, Saves: e.Saves, Progress: progress(e.Progress),
	}
}

func (h hook) endpoint() webhook.Endpoint {
	return webhook.Endpoint{
		ID: h.ID, Broker: h.Broker, ByAdmin: h.ByAdmin, KeyID: h.KeyID, URL: h.URL, Version: h.Version, Mode: h.Mode,
		Whole: h.Whole, Filters: h.Filters, Seal: h.Seal, OldSeal: h.OldSeal, OldUntil: h.OldUntil, Created: h.Created,
		Request: h.Request, Same: h.Same, Generation: h.Generation, Saves: h.Saves, Progress: webhook.Progress(h.Progress),
	}
}

// ofBroker matches the endpoints of a broker, except the endpoints that administrators have created.
func ofBroker(broker string) bson.D {
	return bson.D{{Key: "broker", Value: broker}, {Key: "byAdmin", Value: false}}
}

func (s *Store) Endpoints(ctx context.Context, broker, after string, limit int) ([]webhook.Endpoint, error) {
	filter := bson.D{afterID(after)}
	if broker != "" {
		filter = append(ofBroker(broker), afterID(after))
	}
	var found []hook
	err := s.db.do(ctx, func(ctx context.Context) (err error) {
		found, err = findAll[hook](ctx, s.db.hooks, filter, options.Find().
			SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	var endpoints []webhook.Endpoint
	for _, h := range found {
		endpoints = append(endpoints, h.endpoint())
	}
	return endpoints, nil
}

func (s *Store) Endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	var found hook
	err := s.db.do(ctx, func(ctx context.Context) error {
		return s.db.hooks.FindOne(ctx, withID(id)).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return webhook.Endpoint{}, webhook.ErrNotFound
	case err != nil:
		return webhook.Endpoint{}, fmt.Errorf("get webhook: %w", err)
	}
	return found.endpoint(), nil
}

// Put implements webhook.Store. It does not change the stored term, which is the term of the sender that saved the
// progress last.
func (s *Store) Put(ctx context.Context, e webhook.Endpoint) error {
	next := hookOf(e)
	next.Generation++
	err := s.db.do(ctx, func(ctx context.Context) error {
		var err error
		if e.Generation == 0 {
			err = s.db.createHook(ctx, next)
		} else {
			err = s.db.changeHook(ctx, e, next)
		}
		if err != nil {
			return err
		}
		return s.db.countHookChange(ctx)
	})
	for _, refusal := range []error{webhook.ErrStale, webhook.ErrFull, webhook.ErrBrokerFull} {
		if errors.Is(err, refusal) {
			return refusal
		}
	}
	return errs.In(err, "store webhook")
}

// createHook stores a new endpoint, or returns an error if the limit of endpoints is reached.
func (d *database) createHook(ctx context.Context, h hook) error {
	count, err := d.hooks.CountDocuments(ctx, bson.D{})
	switch {
	case err != nil:
		return err
	case count >= webhook.MaxEndpoints:
		return d.orStale(ctx, h.ID, webhook.ErrFull)
	case !h.ByAdmin:
		return d.takePlace(ctx, h)
	}
	return d.insertHook(ctx, h)
}

// insertHook stores a new endpoint. It returns ErrStale if another endpoint has its id or its place.
func (d *database) insertHook(ctx context.Context, h hook) error {
	_, err := d.hooks.InsertOne(ctx, h)
	if isDuplicate(err) {
		return webhook.ErrStale
	}
	return err
}

// orStale returns ErrStale if an endpoint with this id exists, otherwise err.
func (d *database) orStale(ctx context.Context, id string, err error) error {
	switch found := d.hooks.FindOne(ctx, withID(id)).Err(); {
	case found == nil:
		return webhook.ErrStale
	case !errors.Is(found, mongo.ErrNoDocuments):
		return found
	}
	return err
}

// takePlace stores a new endpoint in a free place of its broker. Each place has at most one endpoint. If a broker
// has n endpoints without a place, the broker's last n places count as taken.
func (d *database) takePlace(ctx context.Context, h hook) error {
	tried := map[string]bool{}
	for range webhook.MaxOfBroker {
		found, err := findAll[hook](ctx, d.hooks, ofBroker(h.Broker), options.Find().SetProjection(only("place")))
		if err != nil {
			return err
		}
		free, taken := webhook.MaxOfBroker, map[string]bool{}
		for _, other := range found {
			switch {
			case other.ID == h.ID:
				return webhook.ErrStale
			case other.Place == "":
				free--
			}
			taken[other.Place] = true
		}
		if len(found) >= webhook.MaxOfBroker {
			return webhook.ErrBrokerFull
		}
		h.Place = ""
		for _, n := range rand.Perm(max(0, free)) {
			if place := placeOf(n, h.Broker); !taken[place] && !tried[place] {
				h.Place = place
				break
			}
		}
		if h.Place == "" {
			break
		}
		if err := d.insertHook(ctx, h); !errors.Is(err, webhook.ErrStale) {
			return err
		}
		tried[h.Place] = true // the place or the id is taken; if the id is taken, the next reading shows it
	}
	return webhook.ErrStale
}

// placeOf returns the name of the place with number n of a broker. Each place has at most one endpoint.
func placeOf(n int, broker string) string { return strconv.Itoa(n) + " " + broker }

// changeHook replaces the stored endpoint `before` by the endpoint `next`. It returns ErrStale if the generation or
// the number of saves of the stored endpoint has changed since it was read.
func (d *database) changeHook(ctx context.Context, before webhook.Endpoint, next hook) error {
	fields, err := fieldsOf(next, "_id", "term", "place")
	if err != nil {
		return err
	}
	result, err := d.hooks.UpdateOne(ctx, append(withID(before.ID),
		bson.E{Key: "generation", Value: before.Generation}, bson.E{Key: "saves", Value: before.Saves}), set(fields...))
	if err == nil && result.MatchedCount == 0 {
		return webhook.ErrStale
	}
	return err
}

// fieldsOf returns the fields of a document, except the fields with the given names.
func fieldsOf(document any, without ...string) (fields bson.D, err error) {
	text, err := bson.Marshal(document)
	if err != nil {
		return nil, err
	}
	var all bson.D
	if err := bson.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for _, field := range all {
		if !slices.Contains(without, field.Key) {
			fields = append(fields, field)
		}
	}
	return fields, nil
}

func (s *Store) Remove(ctx context.Context, id string) error {
	err := s.db.do(ctx, func(ctx context.Context) error {
		result, err := s.db.hooks.DeleteOne(ctx, withID(id))
		if err != nil {
			return err
		}
		if result.DeletedCount == 0 {
			return webhook.ErrNotFound
		}
		return s.db.countHookChange(ctx)
	})
	if err != nil && !errors.Is(err, webhook.ErrNotFound) {
		return fmt.Errorf("remove webhook: %w", err)
	}
	return err
}

// senderID is the id of the document with the term of the process that sends webhooks.
const senderID = "webhooks"

// hookSender is the document with the term of the process that sends webhooks (webhook.Term).
type hookSender struct {
	Holder  string    `bson:"holder"`
	Number  int64     `bson:"number"`
	Until   time.Time `bson:"until"`
	Changes int64     `bson:"changes"`
}

// noSender returns the update that creates the document of the sender, with a term that has ended. It does not
// change a document that exists.
func noSender() bson.D {
	return bson.D{{Key: "$setOnInsert", Value: bson.D{
		{Key: "holder", Value: ""}, {Key: "number", Value: int64(0)}, {Key: "until", Value: time.UnixMilli(0)},
		{Key: "changes", Value: int64(0)},
	}}}
}

// createSender creates the document of the sender if it does not exist.
func (d *database) createSender(ctx context.Context) error {
	_, err := d.senders.UpdateOne(ctx, withID(senderID), noSender(), options.UpdateOne().SetUpsert(true))
	if isDuplicate(err) { // another process has created it at the same time
		return nil
	}
	return err
}

// countHookChange increments webhook.Term.Changes.
func (d *database) countHookChange(ctx context.Context) error {
	increment := bson.D{{Key: "$inc", Value: bson.D{{Key: "changes", Value: int64(1)}}}}
	for {
		result, err := d.senders.UpdateOne(ctx, withID(senderID), increment)
		if err != nil || result.MatchedCount == 1 {
			return err
		}
		if err := d.createSender(ctx); err != nil {
			return err
		}
	}
}

func (s *Store) Lead(
	ctx context.Context, holder string, now, until time.Time,
) (term webhook.Term, held bool, err error) {
	var found hookSender
	err = s.db.do(ctx, func(ctx context.Context) error {
		found, held, err = s.db.lead(ctx, holder, now, until)
		if errors.Is(err, mongo.ErrNoDocuments) { // no process has sent webhooks yet
			if err = s.db.createSender(ctx); err == nil {
				found, held, err = s.db.lead(ctx, holder, now, until)
			}
		}
		return err
	})
	if err != nil {
		return term, false, fmt.Errorf("take the term of the sender: %w", err)
	}
	return webhook.Term{Number: found.Number, Until: found.Until, Changes: found.Changes}, held, nil
}

// wrongTerm is the maximum time from the end of a new term to the end of the stored term. A later end must come
// from a process with a wrong clock.
const wrongTerm = time.Hour

// lead renews the term if the given process (holder) has it. If the term has ended, this process gets a new term. If
// another process has the term, the result is the term of that process. A term counts as ended, too, if its end is
// more than wrongTerm after the end of the new term.
func (d *database) lead(
	ctx context.Context, holder string, now, until time.Time,
) (found hookSender, held bool, err error) {
	mine := set(bson.E{Key: "holder", Value: holder}, bson.E{Key: "until", Value: until})
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	runs := append(withID(senderID), bson.E{Key: "holder", Value: holder},
		bson.E{Key: "until", Value: bson.D{{Key: "$gt", Value: now}}})
	if err = d.senders.FindOneAndUpdate(ctx, runs, mine, after).Decode(&found); !errors.Is(err, mongo.ErrNoDocuments) {
		return found, err == nil, err
	}
	ends := func(operator string, at time.Time) bson.D {
		return bson.D{{Key: "until", Value: bson.D{{Key: operator, Value: at}}}}
	}
	ended := append(withID(senderID), bson.E{Key: "$or", Value: bson.A{
		ends("$lte", now), ends("$gt", until.Add(wrongTerm)),
	}})
	next := append(mine, bson.E{Key: "$inc", Value: bson.D{{Key: "number", Value: int64(1)}}})
	if err = d.senders.FindOneAndUpdate(ctx, ended, next, after).Decode(&found); !errors.Is(err, mongo.ErrNoDocuments) {
		return found, err == nil, err
	}
	return found, false, d.senders.FindOne(ctx, withID(senderID)).Decode(&found)
}

func (s *Store) Release(ctx context.Context, term int64) error {
	err := s.db.do(ctx, func(ctx context.Context) error {
		_, err := s.db.senders.UpdateOne(ctx, append(withID(senderID), bson.E{Key: "number", Value: term}),
			set(bson.E{Key: "holder", Value: ""}, bson.E{Key: "until", Value: time.UnixMilli(0)}))
		return err
	})
	return errs.In(err, "release the term of the sender")
}

// Save implements webhook.Store. A later term may begin during the call. Even then, the guard of each document keeps
// this call from replacing progress that the later term has saved.
func (s *Store) Save(ctx context.Context, term int64, steps []webhook.Step) (stale []string, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		var now hookSender
		err := s.db.senders.FindOne(ctx, withID(senderID)).Decode(&now)
		if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		if now.Number > term {
			return webhook.ErrTermOver
		}
		if len(steps) == 0 {
			return nil
		}
		stale, err = s.db.saveSteps(ctx, term, steps)
		return err
	})
	switch {
	case errors.Is(err, webhook.ErrTermOver):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("save webhooks: %w", err)
	}
	return stale, nil
}

// saveSteps stores the progress of the steps in one bulk write. It returns the ids of the steps that it could not
// store.
func (d *database) saveSteps(ctx context.Context, term int64, steps []webhook.Step) (stale []string, err error) {
	var writes []mongo.WriteModel
	for _, step := range steps {
		writes = append(writes, mongo.NewUpdateOneModel().
			SetFilter(append(withID(step.ID),
				bson.E{Key: "generation", Value: step.Generation},
				bson.E{Key: "term", Value: bson.D{{Key: "$lte", Value: term}}})).
			SetUpdate(append(
				set(bson.E{Key: "progress", Value: progress(step.Progress)}, bson.E{Key: "term", Value: term}),
				bson.E{Key: "$inc", Value: bson.D{{Key: "saves", Value: int64(1)}}})))
	}
	result, err := d.hooks.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	if err != nil || result.MatchedCount == int64(len(steps)) {
		return nil, err
	}
	return d.staleSteps(ctx, term, steps)
}

// staleSteps returns the ids of the steps whose progress the store did not take.
func (d *database) staleSteps(ctx context.Context, term int64, steps []webhook.Step) (stale []string, err error) {
	ids := make([]string, len(steps))
	for i, step := range steps {
		ids[i] = step.ID
	}
	found, err := findAll[hook](ctx, d.hooks, withIDs(ids), options.Find().SetProjection(only("generation", "term")))
	if err != nil {
		return nil, err
	}
	saved := map[string]int64{} // id -> generation
	for _, h := range found {
		if h.Term == term {
			saved[h.ID] = h.Generation
		}
	}
	for _, step := range steps {
		if generation, known := saved[step.ID]; !known || generation != step.Generation {
			stale = append(stale, step.ID)
		}
	}
	return stale, nil
}
