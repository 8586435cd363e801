package assetsvc

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

func TestCosignaturesAreCountedByWitness(t *testing.T) {
	policy := &translog.Policy{}
	for i, url := range []string{"http://w1.example", "http://w2.example", ""} {
		name := []string{"w1", "w2", "w3"}[i]
		key := expect.Get(translog.NewKey(translog.ForWitness, name, bytes.Repeat([]byte{byte(i)}, 32)))(t)
		policy.Witnesses = append(policy.Witnesses, translog.PolicyWitness{Name: name, Key: key.Public(), URL: url})
	}
	meter := metrictest.New()
	c := newCosignatures(meter, policy)
	const count = "registry.log.cosignatures"
	want := map[string]float64{
		count + "{given,w1}": 0, count + "{missing,w1}": 0, count + "{given,w2}": 0, count + "{missing,w2}": 0,
	}
	expect.NoDiff(t, cmp.Diff(want, meter.Read(t)), "before a checkpoint, the counts differ")
	c.note(t.Context(), nil)
	c.note(t.Context(), map[string]error{"w2": errors.New("no answer")})
	want[count+"{given,w1}"], want[count+"{given,w2}"], want[count+"{missing,w2}"] = 2, 1, 1
	expect.NoDiff(t, cmp.Diff(want, meter.Read(t)), "the counts differ")
}
