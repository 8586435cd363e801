package translog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// MaxSubmission is the maximum number of bytes of the body of an add-checkpoint request.
const MaxSubmission = MaxCheckpoint + 32 + (maxHashes+1)*45

// Submission is the body of an add-checkpoint request (tlog-witness).
type Submission struct {
	Old        int64       // the size that the witness cosigned last; 0: it has cosigned none
	Proof      []tlog.Hash // proof that the checkpoint continues the log of size Old
	Checkpoint []byte      // the signed checkpoint
}

// ErrSubmission is the cause of every error about a malformed submission.
var ErrSubmission = errors.New("malformed add-checkpoint request")

// Encode returns the submission as a request's body.
func (s Submission) Encode() []byte {
	b := fmt.Appendf(nil, "old %d\n", s.Old)
	for _, hash := range s.Proof {
		b = append(append(b, hash.String()...), '\n')
	}
	b = append(b, '\n')
	return append(b, s.Checkpoint...)
}

// ParseSubmission reads a request's body. It verifies nothing. Its errors have the
// cause ErrSubmission.
func ParseSubmission(body []byte) (Submission, error) {
	head, checkpoint, ok := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(body) > MaxSubmission || len(lines) > 1+maxHashes || !strings.HasPrefix(lines[0], "old ") {
		return Submission{}, ErrSubmission
	}
	s := Submission{Checkpoint: checkpoint}
	var err error
	if s.Old, err = parseSize(strings.TrimPrefix(lines[0], "old ")); err != nil {
		return Submission{}, fmt.Errorf("%w: %w", ErrSubmission, err)
	}
	for _, line := range lines[1:] {
		hash, err := parseHash(line)
		if err != nil {
			return Submission{}, fmt.Errorf("%w: %w", ErrSubmission, err)
		}
		s.Proof = append(s.Proof, hash)
	}
	return s, nil
}

// Cosignature finds, in the answer of a witness, the cosignature of a signed checkpoint by the given key. It returns
// the line with this cosignature, and the time of the cosignature. It ignores lines of other keys. Without a valid
// cosignature by this key it returns an error with the cause ErrSignature or ErrCheckpoint.
func Cosignature(checkpoint, answer []byte, key PublicKey) (line []byte, at time.Time, err error) {
	text, err := cutNote(checkpoint)
	if err != nil {
		return nil, time.Time{}, err
	}
	_, signatures, err := open(append([]byte(text+"\n"), answer...), []PublicKey{key})
	if err != nil {
		return nil, time.Time{}, err
	}
	s := signatures[0]
	return fmt.Appendf(nil, "— %s %s\n", s.Name, s.Base64), stamp(s), nil
}
