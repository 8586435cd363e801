package disktest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"asset-registry/shared/needtest"
)

// brokenSync is the environment variable of a process in which syncing fails.
const brokenSync = "DISKTEST_BROKEN_SYNC"

// BrokenSync runs the calling test once more, in a child process. There each fsync and fdatasync fails with EIO, as on
// a broken disk. In the child BrokenSync returns true, and the child must then do the test. In the parent it returns
// false, after it has reported the failures of the child. It skips the test if the process is not allowed to filter its
// system calls.
func BrokenSync(t *testing.T) bool {
	t.Helper()
	if os.Getenv(brokenSync) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), brokenSync+"=1")
	var out []byte
	var filtered, failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine, because the filter stays on it
		if filtered = breakSync(); filtered == nil {
			out, failed = cmd.CombinedOutput() // a child has the filter of the thread that starts it
		}
	}()
	<-done
	if filtered != nil {
		needtest.Missing(t, "seccomp", filtered)
	}
	if failed != nil {
		t.Fatalf("with a disk that cannot sync: %v\n%s", failed, out)
	}
	return false
}

// breakSync makes fsync and fdatasync fail on this thread, by a filter of system calls (seccomp).
func breakSync() error {
	const (
		load          = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS
		equal         = syscall.BPF_JMP | syscall.BPF_JEQ
		end           = syscall.BPF_RET
		allow         = 0x7fff0000                    // SECCOMP_RET_ALLOW
		fail          = 0x50000 | uint32(syscall.EIO) // SECCOMP_RET_ERRNO
		setNoNewPrivs = 38                            // PR_SET_NO_NEW_PRIVS
		setSeccomp    = 22                            // PR_SET_SECCOMP
		filterMode    = 2                             // SECCOMP_MODE_FILTER
	)
	code := []syscall.SockFilter{
		{Code: load, K: 0}, // the number of the system call
		{Code: equal, Jt: 2, K: syscall.SYS_FSYNC},
		{Code: equal, Jt: 1, K: syscall.SYS_FDATASYNC},
		{Code: end, K: allow},
		{Code: end, K: fail},
	}
	program := syscall.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, failed := syscall.Syscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); failed != 0 {
		return failed
	}
	_, _, failed := syscall.Syscall6(
		syscall.SYS_PRCTL, setSeccomp, filterMode, uintptr(unsafe.Pointer(&program)), 0, 0, 0)
	if failed != 0 {
		return failed
	}
	return nil
}
