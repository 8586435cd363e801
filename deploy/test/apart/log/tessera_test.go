package log

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"testing"

	cosignature "github.com/transparency-dev/formats/note"
	foreign "github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/formats/witness"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// fetcher returns Tessera's client for a log.
func fetcher(t testing.TB, prefix string) *client.HTTPFetcher {
	t.Helper()
	address, err := url.Parse(prefix)
	expect.OK(t, err)
	f, err := client.NewHTTPFetcher(address, nil)
	expect.OK(t, err)
	return f
}

// verifier returns the log's public key, parsed by Tessera's library.
func (m *made) verifier(t testing.TB) note.Verifier {
	t.Helper()
	v, err := note.NewVerifier(m.key.Public().String())
	expect.OK(t, err)
	return v
}

// check runs Tessera's fsck on the log. It returns a panic as an error, because fsck trusts the number of entries
// that a bundle names, and may panic.
func (m *made) check(t testing.TB, prefix string) (err error) {
	t.Helper()
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("fsck panics: %v", fault)
		}
	}()
	return fsck.New(origin, m.verifier(t), fetcher(t, prefix), bundleHashes, fsck.Opts{N: 2}).Check(t.Context())
}

func bundleHashes(data []byte) ([][]byte, error) {
	var bundle api.EntryBundle
	if err := bundle.UnmarshalText(data); err != nil {
		return nil, err
	}
	var hashes [][]byte
	for _, entry := range bundle.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}

func TestTesseraFsckAgrees(t *testing.T) {
	for _, size := range []int64{1, 255, 256, 257, 5000, 66000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			m := newLog(t, size)
			expect.Try(t, m.check(t, m.serve(t)))
		})
	}
}

func TestTesseraClientAgrees(t *testing.T) {
	const size = 5000
	m := newLog(t, 1234)
	older, olderSigned := m.checkpoint, m.signed(t)
	m.grow(t, size)
	f := fetcher(t, m.serve(t))
	ctx := t.Context()
	checkpoint, _, _, err := client.FetchCheckpoint(ctx, f.ReadCheckpoint, m.verifier(t), origin)
	if err != nil || checkpoint.Size != size || !bytes.Equal(checkpoint.Hash, m.checkpoint.Root[:]) {
		t.Fatalf("got %+v, %v, want %+v", checkpoint, err, m.checkpoint)
	}
	builder, err := client.NewProofBuilder(ctx, size, f.ReadTile)
	expect.OK(t, err)
	for _, index := range []int64{0, 1, 255, 256, 1300, 4863, 4864, 4999} {
		path, err := builder.InclusionProof(ctx, uint64(index))
		expect.OK(t, err)
		ours := m.proof(t, index)
		if !equal(path, ours.Path) {
			t.Errorf("got another path of leaf %d than Tessera", index)
		}
		hash := rfc6962.DefaultHasher.HashLeaf(leafAt(t, index))
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(index), size, hash, bytesOf(ours.Path),
			checkpoint.Hash); err != nil {
			t.Errorf("got %v of leaf %d, want none", err, index)
		}
		bundle, err := client.GetEntryBundle(ctx, f.ReadEntryBundle, uint64(index/256), size)
		if err != nil || !bytes.Equal(bundle.Entries[index%256], leafAt(t, index)) {
			t.Errorf("got another leaf %d than Tessera, %v", index, err)
		}
	}
	path, err := builder.ConsistencyProof(ctx, uint64(older.Size), size)
	expect.OK(t, err)
	ours, err := translog.Consistent(ctx, older.Size, m.checkpoint, m)
	if err != nil || !equal(path, ours) {
		t.Errorf("got another consistency proof than Tessera, %v", err)
	}
	tracker, err := client.NewLogStateTracker(ctx, f.ReadTile, olderSigned, m.verifier(t), origin,
		client.UnilateralConsensus(f.ReadCheckpoint))
	expect.OK(t, err)
	if _, _, _, err := tracker.Update(ctx); err != nil || tracker.Latest().Size != size {
		t.Errorf("got size %d, %v after the update, want %d", tracker.Latest().Size, err, size)
	}
}

func TestMerkleAgrees(t *testing.T) {
	const size = 700
	m := newLog(t, 0)
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	all := factory.NewEmptyRange(0)
	var checkpoints []translog.Checkpoint
	for i := range int64(size + 1) {
		root, err := all.GetRootHash(nil)
		if i == 0 {
			root = rfc6962.DefaultHasher.EmptyRoot()
		}
		if got := m.tree.Root(); err != nil || !bytes.Equal(got[:], root) {
			t.Fatalf("got the root %x of %d leaves, want %x, %v", got, i, root, err)
		}
		checkpoints = append(checkpoints, translog.Checkpoint{Origin: origin, Size: i, Root: m.tree.Root()})
		expect.OK(t, all.Append(rfc6962.DefaultHasher.HashLeaf(leafAt(t, i)), nil))
		tree, full, err := m.tree.Append([][]byte{leafAt(t, i)})
		expect.OK(t, err)
		m.tree = tree
		m.store(t, full)
	}
	m.store(t, m.tree.Edge())
	newest := translog.Checkpoint{Origin: origin, Size: m.tree.Size(), Root: m.tree.Root()}
	for _, older := range checkpoints[1:] {
		path, err := translog.Consistent(context.Background(), older.Size, newest, m)
		expect.OK(t, err)
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(older.Size), uint64(newest.Size), bytesOf(path),
			older.Root[:], newest.Root[:]); err != nil {
			t.Errorf("got %v from %d to %d, want none", err, older.Size, newest.Size)
		}
	}
}

func TestFormatsAgree(t *testing.T) {
	m := newLog(t, 300)
	for _, key := range m.witnesses {
		v, err := cosignature.NewVerifierForCosignatureV1(key.Public().String())
		expect.OK(t, err)
		n, err := note.Open(m.signed(t), note.VerifierList(v))
		if err != nil || len(n.Sigs) != 1 {
			t.Fatalf("got %v, want the cosignature of %s", err, v.Name())
		}
		if at, err := cosignature.CoSigV1Timestamp(n.Sigs[0]); err != nil || !at.Equal(cosignedAt) {
			t.Errorf("got a cosignature at %v, %v, want %v", at, err, cosignedAt)
		}
		signer, err := cosignature.NewSignerForCosignatureV1(key.Secret())
		if err != nil || signer.KeyHash() != key.Public().KeyHash() {
			t.Errorf("got %v of the secret key of %s, want the same id", err, v.Name())
		}
	}
	checkPolicies(t, m)
	file := m.proof(t, 100).Encode()
	var read foreign.TLogProof
	if err := read.Unmarshal(file); err != nil || !bytes.Equal(read.Marshal(), file) {
		t.Errorf("got %s, %v, want the same proof", read.Marshal(), err)
	}
}

// checkPolicies checks that the libraries of others find a quorum exactly where our code finds one.
func checkPolicies(t *testing.T, m *made) {
	t.Helper()
	group, err := witness.ParsePolicy([]byte(m.policy()))
	expect.OK(t, err)
	other, err := tessera.NewWitnessGroupFromPolicy([]byte(m.policy()))
	expect.OK(t, err)
	all := m.witnesses
	for _, some := range [][]translog.Key{nil, all[:1], all[1:2], all[:2], all[1:], all} {
		m.witnesses = some
		signed := m.signed(t)
		m.witnesses = all
		_, err := m.parsed(t).Open(signed)
		want := len(some) >= 2
		if group.Satisfied(signed) != want || other.Satisfied(signed) != want || (err == nil) != want {
			t.Errorf("got %v, %v, %v of %d witnesses, want %v", group.Satisfied(signed), other.Satisfied(signed), err,
				len(some), want)
		}
	}
}

func bytesOf(path []tlog.Hash) [][]byte {
	var all [][]byte
	for _, hash := range path {
		all = append(all, hash[:])
	}
	return all
}

func equal(a [][]byte, b []tlog.Hash) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i][:]) {
			return false
		}
	}
	return true
}
