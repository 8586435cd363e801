package errs

import (
	"errors"
	"io"
	"testing"
)

func TestErrorsAreMadeOnlyOfFaults(t *testing.T) {
	if err := errors.Join(In(nil, "read %s", "a"), If(false, "it is %d", 7)); err != nil {
		t.Errorf("got %v of nil and of a rule that is kept, want nil", err)
	}
	err := errors.Join(In(io.EOF, "read %s", "a"), In(io.EOF, "%w", io.ErrClosedPipe), If(true, "%d", 7))
	const want = "read a: EOF\nio: read/write on closed pipe: EOF\n7"
	if err.Error() != want || !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %q, want %q with both causes", err, want)
	}
}
