package boltstore

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// TestNumbersOfDaysAreIndependent takes numbers of two days in turn, before a write makes them durable. Each day
// must have its own numbers, from 1 upwards. After the write, no number stays in memory.
func TestNumbersOfDaysAreIndependent(t *testing.T) {
	s := expect.Get(Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now}))(t)
	defer s.Close()
	for want := 1; want <= 3; want++ {
		for _, day := range []string{"2026-11-20", "2026-11-21"} {
			expect.Value(t, want, "%s", day)(s.NextNumber(t.Context(), day))
		}
	}
	expect.Get(s.Create(t.Context(), registry.Record{ID: storetest.NewID(), Body: []byte("{}")}))(t)
	if err := s.Close(); err != nil { // the writing goroutine has ended then
		t.Fatal(err)
	}
	if len(s.numbers.given) != 0 {
		t.Errorf("got the days %v in memory, want none after the write", s.numbers.given)
	}
}

// TestANumberThatIsGivenDuringAWriteIsNotGivenAgain saves the first number in a transaction. It takes the
// second number before the transaction is durable, and the third number after that. No number may come twice,
// and none may be left out.
func TestANumberThatIsGivenDuringAWriteIsNotGivenAgain(t *testing.T) {
	s := expect.Get(Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now}))(t)
	defer s.Close()
	const day = "2026-11-20"
	next := func(want int) {
		t.Helper()
		expect.Value(t, want, "")(s.NextNumber(t.Context(), day))
	}
	save := func() (saved map[string]int) {
		t.Helper()
		expect.OK(t, s.file.Update(func(tx *bbolt.Tx) (err error) {
			saved, err = s.numbers.save(tx.Bucket(numberBucket))
			return err
		}))
		return saved
	}
	next(1)
	saved := save()
	next(2)
	s.numbers.forget(saved)
	next(3)
	s.numbers.forget(save())
	if len(s.numbers.given) != 0 {
		t.Errorf("got the days %v in memory, want none after all numbers are durable", s.numbers.given)
	}
	next(4)
}
