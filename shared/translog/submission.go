package translog

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Submission is the body of an add-checkpoint request (tlog-witness).
type Submission struct {
	Old        int64       // the size that the witness cosigned last; 0: it has cosigned none
	Proof      []tlog.Hash // proof that the checkpoint continues the log of size Old
	Checkpoint []byte      // the signed checkpoint
}

// Encode returns the submission as a request's body.
func (s Submission) Encode() []byte {
	b := fmt.Appendf(nil, "old %d\n", s.Old)
	for _, hash := range s.Proof {
		b = append(append(b, hash.String()...), '\n')
	}
	b = append(b, '\n')
	return append(b, s.Checkpoint...)
}

// Cosignature finds, in the answer of a witness, the cosignature of a signed checkpoint by the given key. It returns
// the line with this cosignature, and ignores lines of other keys. Without a valid cosignature by this key it returns
// an error with the cause ErrSignature or ErrCheckpoint.
func Cosignature(checkpoint, answer []byte, key PublicKey) (line []byte, err error) {
	text, err := cutNote(checkpoint)
	if err != nil {
		return nil, err
	}
	_, signatures, err := open(append([]byte(text+"\n"), answer...), []PublicKey{key})
	if err != nil {
		return nil, err
	}
	s := signatures[0]
	return fmt.Appendf(nil, "— %s %s\n", s.Name, s.Base64), nil
}
