package follow

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"asset-registry/shared/testing/expect"
)

// entryOf returns an entry that counts as the given number of bytes in a ring.
func entryOf(position int64, size int) *Entry {
	return &Entry{Position: position, Data: bytes.Repeat([]byte("x"), size-entrySize)}
}

func positionsOf(v View) (positions []int64) {
	for _, e := range v.Entries {
		positions = append(positions, e.Position)
	}
	return positions
}

func checkView(t *testing.T, name string, v View, covered bool, upto int64, positions ...int64) {
	t.Helper()
	got := positionsOf(v)
	same := len(got) == len(positions)
	for i := range got {
		same = same && got[i] == positions[i]
	}
	if v.Covered != covered || v.Upto != upto || !same {
		t.Errorf("%s: got covered %v, up to %d, entries %v; want %v, %d, %v",
			name, v.Covered, v.Upto, got, covered, upto, positions)
	}
	v.Release()
}

func TestRing(t *testing.T) {
	r := NewRing(1000)
	checkView(t, "not started", r.Read(5, 1000), false, 0)
	r.Restart(10, "ten")
	checkView(t, "before its start", r.Read(9, 1000), false, 10)
	checkView(t, "at its start", r.Read(10, 1000), true, 10)
	r.Append([]*Entry{entryOf(12, 100), entryOf(15, 100)}, 20, "twenty")
	checkView(t, "all", r.Read(10, 1000), true, 20, 12, 15)
	checkView(t, "after the first", r.Read(12, 1000), true, 20, 15)
	checkView(t, "some bytes", r.Read(10, 100), true, 12, 12)
	checkView(t, "fewer bytes than an entry has", r.Read(10, 1), true, 12, 12)
	checkView(t, "after the end", r.Read(25, 1000), true, 20)
	r.Append([]*Entry{entryOf(15, 100), entryOf(21, 100)}, 18, "")
	checkView(t, "what is known already is ignored", r.Read(12, 1000), true, 21, 15, 21)
	r.Append([]*Entry{entryOf(22, 900)}, 22, "22")
	checkView(t, "the oldest make room", r.Read(14, 1000), false, 22)
	checkView(t, "the rest is complete", r.Read(15, 1000), true, 22, 21, 22)
	r.Append([]*Entry{entryOf(23, 1001)}, 23, "23")
	checkView(t, "too large for the ring", r.Read(22, 1000), false, 23)
	checkView(t, "it goes on after that", r.Read(23, 1000), true, 23)
	r.Append([]*Entry{entryOf(24, 100)}, 24, "24")
	r.Skip(24, "24")
	checkView(t, "skipping what it has", r.Read(23, 1000), true, 24, 24)
	r.Skip(30, "30")
	checkView(t, "skipping ahead", r.Read(24, 1000), false, 30)
}

func TestRingWakes(t *testing.T) {
	r := NewRing(1000)
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"a start", func() { r.Restart(1, "1") }, true},
		{"an entry", func() { r.Append([]*Entry{entryOf(2, 100)}, 2, "2") }, true},
		{"the same again", func() { r.Append([]*Entry{entryOf(2, 100)}, 2, "2") }, false},
		{"a bookmark", func() { r.Append(nil, 3, "3") }, true},
		{"an old skip", func() { r.Skip(3, "3") }, false},
		{"a skip", func() { r.Skip(4, "4") }, true},
	} {
		changed := r.Read(0, 1).Changed
		step.do()
		got := false
		select {
		case <-changed:
			got = true
		default:
		}
		expect.Equal(t, got, step.want, "%s: woken", step.name)
	}
}

// TestRingBoundsItsBytes lets followers hold entries that the ring has dropped.
// These entries must count against the ring's limit.
func TestRingBoundsItsBytes(t *testing.T) {
	const most = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	r := NewRing(most)
	r.Restart(1, "")
	var held []View
	for position := int64(2); position < 5000; position++ {
		r.Append([]*Entry{entryOf(position, entrySize+random.IntN(3000))}, position, "")
		if random.IntN(3) == 0 {
			held = append(held, r.Read(max(r.Read(0, 0).From, position-int64(random.IntN(20))), 2000))
		}
		if len(held) > random.IntN(30) {
			i := random.IntN(len(held))
			held[i].Release()
			held = append(held[:i], held[i+1:]...)
		}
		live := map[*Entry]bool{}
		for _, e := range r.entries {
			live[e] = true
		}
		for _, v := range held {
			for _, e := range v.Entries {
				live[e] = true
			}
		}
		sum := 0
		for e := range live {
			sum += e.size()
		}
		expect.FatalIf(t, sum > most || sum > r.bytes,
			"at %d: got %d bytes in memory and %d counted, want at most %d", position, sum, r.bytes, most)
	}
	for _, v := range held {
		v.Release()
	}
	r.Append([]*Entry{entryOf(5000, most)}, 5000, "")
	checkView(t, "after all were released", r.Read(4999, 1), true, 5000, 5000)
}
