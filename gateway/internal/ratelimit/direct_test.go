package ratelimit

import "context"

// direct is a Store that makes a round trip to Redis for each request. Tests use it
// to run the script without loans, and benchmarks to compare it with loans.
type direct struct{ redis *Redis }

// Take implements Store. If one bucket has too few tokens, the request is refused. Take then gives back the tokens of
// the other buckets in a second round trip.
func (d direct) Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error) {
	calls := callsFor(buckets)
	if err := d.redis.run(ctx, calls); err != nil {
		return Verdict{}, err
	}
	v := Verdict{States: states}
	var giveBack []*scriptCall
	for _, c := range calls {
		if wait, rate := c.shortage.wait(0, c.least); wait > v.Wait {
			v.Wait, v.Refused = wait, len(v.States)+rate
		}
		if c.granted.tokens > 0 {
			giveBack = append(giveBack, &scriptCall{key: c.key, rates: c.rates, settle: c.granted})
		}
		v.States = append(v.States, c.states...)
	}
	if v.Wait > 0 && giveBack != nil {
		return v, d.redis.run(ctx, giveBack)
	}
	return v, nil
}

func (d direct) Peek(ctx context.Context, buckets []Bucket, states []State) ([]State, error) {
	calls := callsFor(buckets)
	for _, c := range calls {
		c.least, c.most = 0, 0
	}
	if err := d.redis.run(ctx, calls); err != nil {
		return nil, err
	}
	for _, c := range calls {
		states = append(states, c.states...)
	}
	return states, nil
}

// Charge implements Store. No test and no benchmark calls it.
func (d direct) Charge([]Bucket) {}
