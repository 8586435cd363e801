// Package porttest gives a test, a benchmark or a program for developers a free port. Processes that ask for a port at
// the same time get different ports.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// The ports of FreeAddr. The operating system chooses ports above these for other connections and listeners. So
// none of these connections and listeners gets a port of FreeAddr before the program that asked for it listens.
const (
	firstPort = 15_000
	ports     = 15_000
	tries     = 1000
)

// reserved holds the locks of this process's ports. A port stays locked until the
// process ends, so that another test process does not choose it.
var reserved struct {
	sync.Mutex
	locks map[int]*os.File
}

// FreeAddr returns an address of 127.0.0.1 with a free port. Until this process ends,
// no other call of FreeAddr by the same user returns this port.
func FreeAddr() (string, error) {
	cache, err := os.UserCacheDir() // not the folder of temporary files, in which tests must leave nothing
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "asset-registry-tools", "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	for range tries {
		port := firstPort + rand.IntN(ports)
		if ok, err := reserve(dir, port); err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		} else if !ok {
			continue
		}
		addr := fmt.Sprint("127.0.0.1:", port)
		if listener, err := net.Listen("tcp", addr); err == nil {
			return addr, listener.Close()
		}
	}
	return "", fmt.Errorf("find a free port: none of %d is free", tries)
}

// reserve locks a port. It returns false if the port is locked.
func reserve(dir string, port int) (bool, error) {
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.locks[port] != nil {
		return false, nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = lock.Close() // nothing was written, so an error does not matter
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		return false, err
	}
	if reserved.locks == nil {
		reserved.locks = map[int]*os.File{}
	}
	reserved.locks[port] = lock
	return true, nil
}
