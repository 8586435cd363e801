// Package randtest gives tests random numbers that a later run can repeat. A test that fails prints the seed; a
// run with -seed repeats the numbers. Each place in the code that asks for numbers has a separate sequence, so
// it does not matter which other tests run. Goroutines that share a place may get its numbers in a different order.
package randtest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

var wanted = flag.Uint64("seed", 0, "the seed of random numbers that a failed run has printed; 0: a new one")

var all = struct {
	sync.Mutex
	seed   uint64
	places map[string]*rand.Rand
}{places: map[string]*rand.Rand{}}

// IntN returns a number from 0 to n-1.
func IntN(n int) int {
	all.Lock()
	defer all.Unlock()
	return at(place()).IntN(n)
}

// Uint32 returns any number.
func Uint32() uint32 {
	all.Lock()
	defer all.Unlock()
	return at(place()).Uint32()
}

// Uint64 returns any number.
func Uint64() uint64 {
	all.Lock()
	defer all.Unlock()
	return at(place()).Uint64()
}

// N returns a duration of at least 0 and less than d.
func N(d time.Duration) time.Duration {
	all.Lock()
	defer all.Unlock()
	return time.Duration(at(place()).Int64N(int64(d)))
}

// place names the place in the code that called an exported function.
func place() string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// The function `at` returns the numbers of a place. Its first call prints the seed, which go test shows if a test
// fails.
func at(place string) *rand.Rand {
	if all.seed == 0 {
		if all.seed = *wanted; all.seed == 0 {
			all.seed = rand.Uint64()
		}
		fmt.Printf("random numbers: -seed %d\n", all.seed)
	}
	r := all.places[place]
	if r == nil {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(place))
		r = rand.New(rand.NewPCG(all.seed, hash.Sum64()))
		all.places[place] = r
	}
	return r
}
