package follow

import (
	"bytes"
	"sort"
	"sync"
	"sync/atomic"
)

// Entry is an entry of the feed as followers get it. Its fields must not change.
type Entry struct {
	Position int64
	Data     []byte
	Terms    []string     // terms of assetfilter, if the selection asks for them
	held     atomic.Int32 // how many views hold the entry
}

// entrySize is the approximate number of bytes of an Entry without its Data.
const entrySize = 64

// termSize is the approximate number of bytes of one of the Terms without its text.
const termSize = 16

// JSON returns the JSON of an entry. AppendEntry must have made the entry's Data.
func (e *Entry) JSON() []byte {
	_, rest, _ := bytes.Cut(e.Data, []byte{' '})
	_, data, _ := bytes.Cut(rest, []byte{' '})
	return bytes.TrimSuffix(data, []byte{'\n'})
}

func (e *Entry) size() int {
	size := len(e.Data) + entrySize
	for _, term := range e.Terms {
		size += len(term) + termSize
	}
	return size
}

// Ring holds the newest entries of one selection of the feed. It is complete from one
// position to another: Read returns everything between them. It is safe for concurrent
// use.
//
// A Ring never has more bytes in memory than its limit. The limit includes entries that the Ring has dropped but
// that slow followers still hold. Because of these entries, the Ring may have to drop more.
type Ring struct {
	most int

	mu      sync.Mutex
	entries []*Entry // in the order of their positions
	dropped []*Entry // entries that views still hold, but that are no longer in the list `entries`
	bytes   int      // bytes of the lists `entries` and `dropped` together
	started bool
	from    int64         // the ring is complete after this position
	upto    int64         // the ring is complete up to this position
	offset  string        // the position `upto` as a timestamp; "" if it is the position of the last entry
	changed chan struct{} // closed at the next change
}

// NewRing returns a Ring with a limit in bytes. The Ring is empty and covers nothing until Restart.
func NewRing(most int) *Ring { return &Ring{most: most, changed: make(chan struct{})} }

// View has the entries of a Ring after a position. The caller must call Release when it no longer needs the entries.
type View struct {
	Covered bool     // the ring is complete after the position
	Entries []*Entry // in order; empty if not Covered
	Upto    int64    // position up to which Entries has everything
	Offset  string   // Upto as a timestamp; "" if Upto is the position of the last entry
	From    int64    // position after which the ring is complete; 0: it has not started
	Changed <-chan struct{}
}

// Release lets the ring free the entries.
func (v View) Release() {
	for _, e := range v.Entries {
		e.held.Add(-1)
	}
}

// Read returns the entries after a position. Together they have approximately `most` bytes at most. If the ring has
// an entry after the position, Read returns at least one.
func (r *Ring) Read(after int64, most int) View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := View{Upto: r.upto, Offset: r.offset, From: r.from, Changed: r.changed}
	if !r.started || after < r.from {
		return v
	}
	v.Covered = true
	if after >= r.upto {
		return v
	}
	first := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].Position > after })
	for _, e := range r.entries[first:] {
		if len(v.Entries) > 0 && most < e.size() {
			v.Upto, v.Offset = v.Entries[len(v.Entries)-1].Position, ""
			return v
		}
		most -= e.size()
		e.held.Add(1)
		v.Entries = append(v.Entries, e)
	}
	return v
}

// Upto returns the position up to which the ring is complete, and whether it has
// started.
func (r *Ring) Upto() (upto int64, started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.upto, r.started
}

// Restart empties the ring, and sets the position after which the ring is complete.
func (r *Ring) Restart(position int64, offset string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restart(position, offset)
	r.wake()
}

func (r *Ring) restart(position int64, offset string) {
	for len(r.entries) > 0 {
		r.drop()
	}
	r.started, r.from, r.upto, r.offset = true, position, position, offset
}

// Append adds entries. Afterwards the ring is complete up to the position `upto`. Append ignores entries that the ring
// has already. Entries must be in order, and the first must follow the ring's last one without a gap.
func (r *Ring) Append(entries []*Entry, upto int64, offset string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.upto
	for _, e := range entries {
		if e.Position > r.upto {
			r.add(e)
		}
	}
	if upto > r.upto {
		r.upto, r.offset = upto, offset
	} else if upto == r.upto {
		r.offset = offset
	}
	if r.upto != before {
		r.wake()
	}
}

// Skip makes the ring go on after an entry that is too large for it: followers read that entry from a page.
func (r *Ring) Skip(position int64, offset string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if position > r.upto {
		r.restart(position, offset)
		r.wake()
	}
}

// add makes room for an entry and adds it.
func (r *Ring) add(e *Entry) {
	if r.bytes+e.size() > r.most {
		r.forget()
	}
	for r.bytes+e.size() > r.most && len(r.entries) > 0 {
		r.drop()
	}
	if r.bytes+e.size() > r.most { // nothing else can be dropped: slow followers hold the bytes
		r.restart(e.Position, "")
		return
	}
	r.entries = append(r.entries, e)
	r.bytes += e.size()
	r.upto, r.offset = e.Position, ""
}

// drop removes the oldest entry.
func (r *Ring) drop() {
	e := r.entries[0]
	r.entries[0], r.entries = nil, r.entries[1:]
	r.from = e.Position
	if e.held.Load() > 0 {
		r.dropped = append(r.dropped, e)
		return
	}
	r.bytes -= e.size()
}

// forget frees the dropped entries that no view holds any more.
func (r *Ring) forget() {
	kept := r.dropped[:0]
	for _, e := range r.dropped {
		if e.held.Load() > 0 {
			kept = append(kept, e)
			continue
		}
		r.bytes -= e.size()
	}
	clear(r.dropped[len(kept):])
	r.dropped = kept
}

func (r *Ring) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}
