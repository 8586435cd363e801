package assetsvc

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/translog"
)

// asked counts which witnesses gave the cosignatures that they were asked for.
type asked struct {
	count          metric.Int64Counter
	given, missing map[string]metric.AddOption // labels, by the name of the witness
}

// newAsked returns counts of 0 for each witness of the policy that has an address.
func newAsked(meter metric.Meter, policy *translog.Policy) (*asked, error) {
	count, err := meter.Int64Counter("registry.log.cosignatures", metric.WithUnit("{cosignature}"),
		metric.WithDescription("Cosignatures of checkpoints of the public log that witnesses were asked for."))
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	a := &asked{count, map[string]metric.AddOption{}, map[string]metric.AddOption{}}
	for _, w := range policy.Witnesses {
		if w.URL == "" {
			continue
		}
		a.given[w.Name], a.missing[w.Name] = labels(w.Name, "given"), labels(w.Name, "missing")
		count.Add(context.Background(), 0, a.given[w.Name])
		count.Add(context.Background(), 0, a.missing[w.Name])
	}
	return a, nil
}

func labels(witness, result string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(
		attribute.String("witness", witness), attribute.String("result", result)))
}

// note counts the results of one checkpoint. faults has the witnesses that did not
// cosign it.
func (a *asked) note(ctx context.Context, faults map[string]error) {
	for name, given := range a.given {
		if faults[name] == nil {
			a.count.Add(ctx, 1, given)
		} else {
			a.count.Add(ctx, 1, a.missing[name])
		}
	}
}
