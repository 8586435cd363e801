package assetsvc

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/translog"
)

// cosignatures counts, for each witness, how many of the requested cosignatures it gave, and how many it did not
// give.
type cosignatures struct {
	count          metric.Int64Counter
	given, missing map[string]metric.AddOption // labels of the counts; the keys are names of witnesses
}

// newCosignatures returns counts of 0 for each witness in the policy, if the witness has an address.
func newCosignatures(meter metric.Meter, policy *translog.Policy) (*cosignatures, error) {
	count, err := meter.Int64Counter("registry.log.cosignatures", metric.WithUnit("{cosignature}"),
		metric.WithDescription("Cosignatures of checkpoints of the public log that witnesses were asked for."))
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	c := &cosignatures{count, map[string]metric.AddOption{}, map[string]metric.AddOption{}}
	for _, w := range policy.Witnesses {
		if w.URL == "" {
			continue
		}
		c.given[w.Name], c.missing[w.Name] = labels(w.Name, "given"), labels(w.Name, "missing")
		count.Add(context.Background(), 0, c.given[w.Name])
		count.Add(context.Background(), 0, c.missing[w.Name])
	}
	return c, nil
}

func labels(witness, result string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(
		attribute.String("witness", witness), attribute.String("result", result)))
}

// note counts the results of one checkpoint. The map `faults` has an error for each witness that did not cosign the
// checkpoint.
func (c *cosignatures) note(ctx context.Context, faults map[string]error) {
	for name, given := range c.given {
		if faults[name] == nil {
			c.count.Add(ctx, 1, given)
		} else {
			c.count.Add(ctx, 1, c.missing[name])
		}
	}
}
