package witness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/translog"
)

// reader reads the tiles of a log, in the state that the log had with `size` leaves.
type reader struct {
	log  *testLog
	size int64
}

// ReadPart implements translog.PartReader.
func (r reader) ReadPart(_ context.Context, tile translog.Tile) ([]byte, error) {
	if data, ok := r.log.trees[r.size].Part(tile); ok {
		return data, nil
	}
	if data, ok := r.log.parts[tile.Path()]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

const stateVariable = "WITNESS_TEST_STATE"

// TestMain runs a witness instead of the tests if a test has started this process for that.
func TestMain(m *testing.M) {
	if dir := os.Getenv(stateVariable); dir != "" {
		fmt.Println(serve(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve runs a witness until the process is killed. It prints the address of the witness.
func serve(dir string) error {
	key, errKey := translog.NewKey(translog.ForWitness, "witness.example/w", []byte(strings.Repeat("\x01", 32)))
	log, errLog := translog.NewKey(translog.ForLog, origin, []byte(strings.Repeat("\x02", 32)))
	if err := errors.Join(errKey, errLog); err != nil {
		return err
	}
	w, err := New(Config{Key: key, Logs: []translog.PublicKey{log.Public()}, State: dir})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, w.Handler())
}

// start starts a witness in a new process, and returns its address.
func start(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), stateVariable+"="+dir)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(address, "http://") {
		t.Fatalf("got %q, %v, want an address", address, err)
	}
	return command, strings.TrimSpace(address)
}

// TestAKilledWitnessForgetsNoCosignature kills a witness again and again while a log grows. After each start,
// the witness must refuse a fork of the trees that it has cosigned.
func TestAKilledWitnessForgetsNoCosignature(t *testing.T) {
	const kills, most = 20, 4000
	dir := t.TempDir()
	l := newTestLog(t, most, "leaf")
	random := rand.New(rand.NewPCG(1, 2))
	acknowledged := int64(0)
	for range kills {
		command, address := start(t, dir)
		known := sizeOf(t, l, address)
		if known < acknowledged {
			t.Fatalf("got size %d after a kill, want at least %d", known, acknowledged)
		}
		if known > 0 {
			fork := newTestLog(t, int(known)+1, "other")
			if status, _, _ := post(t, address, fork.submission(t, known, known+1).Encode()); status != 422 {
				t.Errorf("got %d of a fork of size %d, want 422", status, known)
			}
		}
		var last atomic.Int64
		last.Store(known)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for size := known + 1; size < most; size++ {
				if !accepts(t, l, address, last.Load(), size) {
					return
				}
				last.Store(size)
			}
		}()
		for target := known + int64(1+random.IntN(20)); last.Load() < target; {
			select {
			case <-done:
				t.Fatal("got no cosignature before the kill, want some")
			case <-time.After(time.Duration(random.IntN(1000)) * time.Microsecond):
			}
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		_ = command.Wait() // the error only says that the process was killed
		acknowledged = last.Load()
	}
	t.Logf("%d cosignatures, %d kills", acknowledged, kills)
}

// accepts reports whether the witness cosigns a size. If the witness does not answer, it returns false.
func accepts(t *testing.T, l *testLog, address string, older, size int64) bool {
	body := l.submission(t, older, size).Encode()
	r, err := http.Post(address+"/add-checkpoint", "text/plain", strings.NewReader(string(body)))
	if err != nil {
		return false
	}
	defer func() { _ = r.Body.Close() }() // the body is not read, because only the status is needed
	return r.StatusCode == http.StatusOK
}

// sizeOf asks a witness for the size of the checkpoint that it has cosigned last.
func sizeOf(t *testing.T, l *testLog, address string) int64 {
	t.Helper()
	// The witness has never cosigned the largest size. So it refuses this submission, and its answer names the size
	// that it has cosigned.
	status, _, answer := post(t, address, translog.Submission{Old: whole(l), Checkpoint: l.signed(t, whole(l))}.Encode())
	var size int64
	if _, err := fmt.Sscanf(answer, "%d\n", &size); err != nil || status != http.StatusConflict {
		t.Fatalf("got %d, %q, want the size", status, answer)
	}
	return size
}

// The function `whole` returns the size of the whole log.
func whole(l *testLog) int64 { return int64(len(l.trees) - 1) }
