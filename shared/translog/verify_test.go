package translog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/expect"
)

// signedLog returns a log of a size with a checkpoint.
func signedLog(t testing.TB, size int64) (Checkpoint, memory) {
	t.Helper()
	tree, m := grow(t, size, 1000)
	c := Checkpoint{origin, size, tree.Root()}
	var err error
	m.checkpoint, err = Sign(c, logKey(t))
	expect.OK(t, err)
	return c, m
}

func verifier(t testing.TB) Verifier {
	t.Helper()
	policy, err := LogPolicy(logKey(t).Public())
	expect.OK(t, err)
	return Verifier{Policy: policy}
}

func TestAWholeLogIsVerified(t *testing.T) {
	for _, size := range []int64{0, 1, 256, 3000} {
		c, m := signedLog(t, size)
		for _, ahead := range []int{0, 1, 8} {
			v := verifier(t)
			v.Ahead = ahead
			next := int64(0)
			v.Leaf = func(index int64, leaf Leaf) error {
				if index != next || !bytes.Equal(leaf.Encode(), leafAt(index)) {
					t.Errorf("got leaf %d as %s, want leaf %d", index, leaf.Encode(), next)
				}
				next++
				return nil
			}
			got, err := v.Verify(t.Context(), m)
			expect.ErrorIf(t, err != nil || got.Checkpoint != c || next != size,
				"got %+v, %v, %d leaves, want %+v", got, err, next, c)
		}
	}
}

func TestARememberedCheckpointMustBeContinued(t *testing.T) {
	newest, m := signedLog(t, 3000)
	for _, size := range []int64{0, 1, 255, 256, 257, 2999, 3000} {
		older, _ := signedLog(t, size)
		v := verifier(t)
		v.Remembered = older
		if _, err := v.Verify(t.Context(), m); err != nil {
			t.Errorf("got %v after size %d, want none", err, size)
		}
		v.Remembered.Root[7]++
		if _, err := v.Verify(t.Context(), m); !errors.Is(err, ErrConsistency) {
			t.Errorf("got %v after a fork of size %d, want %v", err, size, ErrConsistency)
		}
	}
	for _, older := range []Checkpoint{{"other.example/log", 3, newest.Root}, {"other.example/log", 3000, newest.Root},
		{origin, 3001, newest.Root}} {
		v := verifier(t)
		v.Remembered = older
		if _, err := v.Verify(t.Context(), m); !errors.Is(err, ErrConsistency) {
			t.Errorf("got %v after %+v, want %v", err, older, ErrConsistency)
		}
	}
}

// Promises: verify-parts
func TestEachDamagedPartIsFound(t *testing.T) {
	_, m := signedLog(t, 1400)
	for _, path := range slices.Sorted(maps.Keys(m.parts)) {
		good := m.parts[path]
		for i := 0; i < len(good); i += 1 + len(good)/10 {
			m.parts[path] = bytes.Clone(good)
			m.parts[path][i] ^= 1 << (i % 8)
			if _, err := verifier(t).Verify(t.Context(), m); err == nil {
				t.Errorf("got no error with byte %d of %s flipped, want one", i, path)
			}
		}
		for _, damaged := range [][]byte{nil, good[:len(good)-1], append(bytes.Clone(good), 0)} {
			m.parts[path] = damaged
			if _, err := verifier(t).Verify(t.Context(), m); err == nil {
				t.Errorf("got no error with %s of %d bytes, want one", path, len(damaged))
			}
		}
		delete(m.parts, path)
		if _, err := verifier(t).Verify(t.Context(), m); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v without %s, want %v", err, path, fs.ErrNotExist)
		}
		m.parts[path] = good
	}
	m.parts["tile/0/000"], m.parts["tile/0/001"] = m.parts["tile/0/001"], m.parts["tile/0/000"]
	if _, err := verifier(t).Verify(t.Context(), m); !errors.Is(err, ErrTampered) {
		t.Errorf("got %v of swapped tiles, want %v", err, ErrTampered)
	}
}

// resigned returns a log whose owner changed its leaves and signed the result.
func resigned(t testing.TB, all [][]byte) memory {
	t.Helper()
	tree, full, err := Tree{}.Append(all)
	expect.OK(t, err)
	m := memory{parts: map[string][]byte{}}
	for _, part := range append(full, tree.Edge()...) {
		m.parts[part.Tile.Path()] = part.Data
	}
	m.checkpoint, err = Sign(Checkpoint{origin, tree.Size(), tree.Root()}, logKey(t))
	expect.OK(t, err)
	return m
}

func TestALogThatItsOwnerChangedIsFound(t *testing.T) {
	older, _ := signedLog(t, 500)
	swapped, dropped, changed := leaves(0, 700), leaves(0, 700), leaves(0, 700)
	swapped[10], swapped[11] = swapped[11], swapped[10]
	dropped = slices.Delete(dropped, 20, 21)
	changed[30] = bytes.Replace(changed[30], []byte(`"change"`), []byte(`"import"`), 1)
	double := slices.Insert(leaves(0, 700), 40, leafAt(40))
	foreign := slices.Insert(leaves(0, 700), 50, []byte("text"))
	for _, c := range []struct {
		name       string
		leaves     [][]byte
		remembered Checkpoint
		want       error
	}{
		{"a leaf changed", changed, older, ErrConsistency},
		{"a leaf dropped", dropped, older, ErrConsistency},
		{"two leaves swapped", swapped, Checkpoint{}, ErrOrder},
		{"a leaf twice", double, Checkpoint{}, ErrOrder},
		{"an entry that is no leaf", foreign, Checkpoint{}, ErrLeaf},
		{"nothing", leaves(0, 700), older, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verifier(t)
			v.Remembered = c.remembered
			_, err := v.Verify(t.Context(), resigned(t, c.leaves))
			expect.ErrorIf(t, !errors.Is(err, c.want) || (err == nil) != (c.want == nil), "got %v, want %v", err, c.want)
		})
	}
}

func TestAPartialPartIsTakenFromTheFullOne(t *testing.T) {
	_, grown := signedLog(t, 1300)
	c, m := signedLog(t, 1100)
	for path := range m.parts {
		if tile, err := ParsePath(path); err != nil || !tile.IsFull() && tile.Level < 1 {
			delete(m.parts, path)
		}
	}
	for _, path := range []string{"tile/0/004", "tile/entries/004"} {
		m.parts[path] = grown.parts[path]
	}
	if got, err := verifier(t).Verify(t.Context(), m); err != nil || got.Checkpoint != c {
		t.Errorf("got %+v, %v, want %+v", got, err, c)
	}
	for _, path := range []string{"tile/0/004", "tile/entries/004"} {
		good := m.parts[path]
		m.parts[path] = good[:tlog.HashSize]
		if _, err := verifier(t).Verify(t.Context(), m); !errors.Is(err, ErrPart) {
			t.Errorf("got %v with a short %s, want %v", err, path, ErrPart)
		}
		m.parts[path] = good
	}
}

func TestAVerificationEndsEarly(t *testing.T) {
	_, m := signedLog(t, 3000)
	stop := errors.New("stop")
	v := verifier(t)
	v.Ahead = 4
	v.Leaf = func(index int64, _ Leaf) error {
		if index == 300 {
			return stop
		}
		return nil
	}
	expect.ErrOf(t, stop, "")(v.Verify(t.Context(), m))
	ctx, cancel := context.WithCancel(t.Context())
	v.Leaf = func(index int64, _ Leaf) error {
		if index == 300 {
			cancel()
		}
		return nil
	}
	expect.ErrOf(t, context.Canceled, "")(v.Verify(ctx, m))
}

func BenchmarkVerify(b *testing.B) {
	const size = 100000
	_, m := signedLog(b, size)
	v := verifier(b)
	v.Ahead = 4
	b.ReportAllocs()
	for b.Loop() {
		expect.Get(v.Verify(b.Context(), m))(b)
	}
	b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "leaves/s")
}
