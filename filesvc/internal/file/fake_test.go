package file

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// memory is a fake of both stores, in memory. It refuses names of bytes that the real stores refuse. Before each
// operation, it calls the function `step` with the name of the operation. If the function returns an error, the
// operation fails with this error. The operation then has an effect only if the error is errLost.
type memory struct {
	step func(operation string) error
	now  func() time.Time

	mu      sync.Mutex
	files   map[string]File
	blobs   map[string]kept
	removed map[string]File
	reading Reading
	awaited map[Naming]bool
}

type kept struct {
	text []byte
	at   time.Time
}

func newMemory(now func() time.Time) *memory {
	return &memory{
		step: func(string) error { return nil }, now: now, files: map[string]File{}, blobs: map[string]kept{},
		removed: map[string]File{}, awaited: map[Naming]bool{},
	}
}

// begin starts an operation and locks the memory. The caller unlocks it.
func (m *memory) begin(operation string) error {
	err := m.step(operation)
	m.mu.Lock()
	return err
}

func (m *memory) Create(_ context.Context, f File) error {
	defer m.mu.Unlock()
	if err := m.begin("create"); err != nil {
		return err
	}
	if _, taken := m.files[f.ID]; taken {
		return ErrExists
	}
	if f.Revision != 1 {
		return fmt.Errorf("a new file has the revision %d", f.Revision)
	}
	m.files[f.ID] = f
	return nil
}

func (m *memory) Get(_ context.Context, id string) (File, error) {
	defer m.mu.Unlock()
	if err := m.begin("get"); err != nil {
		return File{}, err
	}
	f, found := m.files[id]
	if !found {
		return File{}, ErrNotFound
	}
	return f, nil
}

// fails makes each call of an operation fail.
func (m *memory) fails(operation string, err error) {
	m.step = func(step string) error {
		if step == operation {
			return err
		}
		return nil
	}
}

// errLost makes an operation take effect, and fail nevertheless, as if its answer was lost.
var errLost = errors.New("the answer was lost")

func (m *memory) Replace(_ context.Context, f File) error {
	defer m.mu.Unlock()
	err := m.begin("replace")
	if err != nil && !errors.Is(err, errLost) {
		return err
	}
	if old, found := m.files[f.ID]; !found || old.Revision != f.Revision-1 {
		return ErrStale
	}
	m.files[f.ID] = f
	return err
}

func (m *memory) Delete(_ context.Context, f File) error {
	defer m.mu.Unlock()
	if err := m.begin("delete"); err != nil {
		return err
	}
	if old, found := m.files[f.ID]; !found || old.Revision != f.Revision {
		return ErrStale
	}
	delete(m.files, f.ID)
	return nil
}

// Page returns files even with an error, like a store that finds damage in the middle of a page.
func (m *memory) Page(_ context.Context, after string, limit int) (found []File, err error) {
	defer m.mu.Unlock()
	err = m.begin("page")
	for _, id := range first(maps.Keys(m.files), after, limit) {
		found = append(found, m.files[id])
	}
	return found, err
}

func (m *memory) Own(_ context.Context, broker, after string, limit int) (found []File, err error) {
	defer m.mu.Unlock()
	err = m.begin("page")
	own := maps.Clone(m.files)
	maps.DeleteFunc(own, func(_ string, f File) bool { return f.Broker != broker })
	for _, id := range first(maps.Keys(own), after, limit) {
		found = append(found, own[id])
	}
	return found, err
}

func (m *memory) Recount(context.Context) error { return nil }

func (m *memory) Usage(_ context.Context, broker string) (u Usage, err error) {
	defer m.mu.Unlock()
	if err := m.begin("usage"); err != nil {
		return u, err
	}
	for _, f := range m.files {
		if f.Broker == broker {
			u = u.Add(1, f.Usage())
		}
	}
	return u, nil
}

func (m *memory) IsRemoved(_ context.Context, sha256 string) (bool, error) {
	defer m.mu.Unlock()
	if err := m.begin("is removed"); err != nil {
		return false, err
	}
	for _, f := range m.files {
		if f.SHA256 == sha256 && f.State == Removed {
			return true, nil
		}
	}
	return false, nil
}

func (m *memory) Reading(context.Context) (Reading, error) {
	defer m.mu.Unlock()
	err := m.begin("reading")
	return m.reading, err
}

func (m *memory) SetReading(_ context.Context, r Reading) error {
	defer m.mu.Unlock()
	err := m.begin("set reading")
	if err == nil {
		m.reading.Position = max(m.reading.Position, r.Position)
		if !r.Complete.IsZero() {
			m.reading.Complete, m.reading.Began = r.Complete, r.Began
		}
	}
	return err
}

func (m *memory) PassHour(_ context.Context, hours int64) error {
	defer m.mu.Unlock()
	err := m.begin("pass hour")
	if err == nil && m.reading.Hours == hours {
		m.reading.Hours++
	}
	return err
}

func (m *memory) Await(_ context.Context, n Naming) error {
	defer m.mu.Unlock()
	err := m.begin("await")
	if err == nil {
		m.awaited[n] = true
	}
	return err
}

func (m *memory) Awaiting(_ context.Context, after Naming, limit int) (found []Naming, err error) {
	defer m.mu.Unlock()
	if err := m.begin("awaiting"); err != nil {
		return nil, err
	}
	order := func(x, y Naming) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Asset, y.Asset))
	}
	for _, n := range slices.SortedFunc(maps.Keys(m.awaited), order) {
		if order(n, after) > 0 && len(found) < limit {
			found = append(found, n)
		}
	}
	return found, nil
}

func (m *memory) Settle(_ context.Context, n Naming) error {
	defer m.mu.Unlock()
	err := m.begin("settle")
	if err == nil {
		delete(m.awaited, n)
	}
	return err
}

func (m *memory) Put(_ context.Context, name string, from io.Reader) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := m.begin("put"); err != nil {
		return err
	}
	if !IsBlob(name) {
		return fmt.Errorf("%q is no name of bytes", name)
	}
	m.blobs[name] = kept{text, m.now()}
	return nil
}

type open struct {
	*bytes.Reader
}

func (open) Close() error { return nil }

func (m *memory) Open(_ context.Context, name string) (Blob, error) {
	defer m.mu.Unlock()
	if err := m.begin("open"); err != nil {
		return nil, err
	}
	if !IsBlob(name) {
		return nil, fmt.Errorf("%q is no name of bytes", name)
	}
	b, found := m.blobs[name]
	if !found {
		return nil, ErrNotFound
	}
	return open{bytes.NewReader(b.text)}, nil
}

func (m *memory) Remove(_ context.Context, name string) error {
	defer m.mu.Unlock()
	if err := m.begin("remove"); err != nil {
		return err
	}
	delete(m.blobs, name)
	return nil
}

func (m *memory) Names(_ context.Context, after string, limit int) ([]string, error) {
	defer m.mu.Unlock()
	if err := m.begin("names"); err != nil {
		return nil, err
	}
	return first(maps.Keys(m.blobs), after, limit), nil
}

// The function `first` returns the names that are greater than the argument `after`, in sorted order. If there are
// more than `limit` names, it returns the lowest ones.
func first(names iter.Seq[string], after string, limit int) (found []string) {
	for name := range names {
		if name <= after {
			continue
		}
		at, _ := slices.BinarySearch(found, name)
		if at < limit {
			found = slices.Insert(found[:min(len(found), limit-1)], at, name)
		}
	}
	return found
}

func (m *memory) IsBefore(_ context.Context, name string, at time.Time) (bool, error) {
	defer m.mu.Unlock()
	err := m.begin("is before")
	b, found := m.blobs[name]
	return found && b.at.Before(at), err
}

func (m *memory) Tidy(context.Context, time.Time) error {
	defer m.mu.Unlock()
	return m.begin("tidy")
}

func (m *memory) NoteRemoval(_ context.Context, f File) error {
	defer m.mu.Unlock()
	err := m.begin("note removal")
	if _, is := m.removed[f.ID]; err == nil && !is {
		m.removed[f.ID] = f
	}
	return err
}

func (m *memory) Removals(context.Context) (found []File, err error) {
	defer m.mu.Unlock()
	err = m.begin("removals")
	for _, id := range slices.Sorted(maps.Keys(m.removed)) {
		found = append(found, m.removed[id])
	}
	return found, err
}

func (m *memory) Removed(_ context.Context, after string, limit int) (ids []string, err error) {
	defer m.mu.Unlock()
	err = m.begin("removed")
	for _, id := range slices.Sorted(maps.Keys(m.removed)) {
		if id > after && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// repeating makes each successful change once more, as a driver may do after a lost answer.
type repeating struct{ *memory }

func (r repeating) Replace(ctx context.Context, f File) error {
	if err := r.memory.Replace(ctx, f); err != nil {
		return err
	}
	return r.memory.Replace(ctx, f)
}
