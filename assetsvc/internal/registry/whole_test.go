package registry

import "testing"

// TestAWholeAssetIsKeptAtTheLatestAfterAThousandRevisions calls keepsWhole many times for each case. One case is
// the largest asset with a small patch. For each revision that is a multiple of 1024, keepsWhole must return true.
// Promises: proof-changes
func TestAWholeAssetIsKeptAtTheLatestAfterAThousandRevisions(t *testing.T) {
	for _, c := range []struct {
		revision      int64
		patch, whole  int
		always, often bool // always: every call returns true; often: more than a tenth of the calls do
	}{
		{1023, 10, MaxAsset, false, false},
		{1024, 10, MaxAsset, true, true},
		{10 * 1024, 10, MaxAsset, true, true},
		{1023, MaxAsset / 4, MaxAsset, false, true},
		{1023, MaxAsset / 2, MaxAsset, true, true},
	} {
		kept := 0
		const draws = 1000
		for range draws {
			if keepsWhole(c.revision, c.patch, c.whole) {
				kept++
			}
		}
		if (kept == draws) != c.always || (kept > draws/10) != c.often {
			t.Errorf("revision %d, a patch of %d bytes: got a copy in %d of %d draws, want always %t, often %t",
				c.revision, c.patch, kept, draws, c.always, c.often)
		}
	}
}
