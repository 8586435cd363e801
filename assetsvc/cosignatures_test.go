package assetsvc

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/translog"
)

func TestCosignaturesAreCountedByWitness(t *testing.T) {
	policy := &translog.Policy{}
	for i, url := range []string{"http://w1.example", "http://w2.example", ""} {
		name := []string{"w1", "w2", "w3"}[i]
		key, err := translog.NewKey(translog.ForWitness, name, bytes.Repeat([]byte{byte(i)}, 32))
		if err != nil {
			t.Fatal(err)
		}
		policy.Witnesses = append(policy.Witnesses, translog.PolicyWitness{Name: name, Key: key.Public(), URL: url})
	}
	meter := metrictest.New()
	c, err := newCosignatures(meter, policy)
	if err != nil {
		t.Fatal(err)
	}
	const count = "registry.log.cosignatures"
	want := map[string]float64{
		count + "{given,w1}": 0, count + "{missing,w1}": 0, count + "{given,w2}": 0, count + "{missing,w2}": 0,
	}
	if diff := cmp.Diff(want, meter.Read(t)); diff != "" {
		t.Errorf("before a checkpoint, the counts differ (-want +got):\n%s", diff)
	}
	c.note(t.Context(), nil)
	c.note(t.Context(), map[string]error{"w2": errors.New("no answer")})
	want[count+"{given,w1}"], want[count+"{given,w2}"], want[count+"{missing,w2}"] = 2, 1, 1
	if diff := cmp.Diff(want, meter.Read(t)); diff != "" {
		t.Errorf("the counts differ (-want +got):\n%s", diff)
	}
}
