// Package translog holds the formats of the public log of changes (docs/log.md): leaves, commitments, tiles,
// checkpoints, cosignatures, policies and proofs, and the verification of a whole log. C2SP specifies the
// formats (signed-note, tlog-checkpoint, tlog-tiles, tlog-cosignature, tlog-policy, tlog-proof). The package
// uses neither network nor storage.
package translog

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is the state of a log at a size (tlog-checkpoint).
type Checkpoint struct {
	Origin string // names the log
	Size   int64
	Root   tlog.Hash
}

// The causes of errors about checkpoints.
var (
	ErrCheckpoint = errors.New("malformed checkpoint")
	ErrSignature  = errors.New("the checkpoint has no valid signature of the log")
	ErrQuorum     = errors.New("too few witnesses cosigned the checkpoint")
)

// Text returns the body of the checkpoint, which is the text that signatures sign.
func (c Checkpoint) Text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

// Tree returns the checkpoint in the form that package tlog takes.
func (c Checkpoint) Tree() tlog.Tree { return tlog.Tree{N: c.Size, Hash: c.Root} }

// parseText reads the body of a checkpoint. The result must not be trusted before the signatures are verified.
// parseText ignores extension lines. Its errors have the cause ErrCheckpoint.
func parseText(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return Checkpoint{}, fmt.Errorf("%w: fewer than three lines", ErrCheckpoint)
	}
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			return Checkpoint{}, fmt.Errorf("%w: an empty line", ErrCheckpoint)
		}
	}
	size, err := parseSize(lines[1])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	root, err := parseHash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: root}, nil
}

// Sign returns the checkpoint signed by keys of the log. The names of the keys must be the origin.
func Sign(c Checkpoint, keys ...Key) ([]byte, error) {
	var signers []note.Signer
	for _, key := range keys {
		if key.public.use != ForLog || key.public.name != c.Origin {
			return nil, fmt.Errorf("%w: %q cannot sign checkpoints of %q", ErrKey, key.public.name, c.Origin)
		}
		signers = append(signers, signer{key})
	}
	if _, err := parseText(c.Text()); err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: c.Text()}, signers...)
}

// cutNote returns the text of a signed note. It refuses base64 with stray bits, and notes that are too long. The
// specification signed-note does not allow these, but note.Open accepts them.
func cutNote(signed []byte) (text string, err error) {
	split := bytes.LastIndex(signed, []byte("\n\n"))
	if split < 0 || len(signed) > MaxCheckpoint || !bytes.HasSuffix(signed, []byte("\n")) {
		return "", fmt.Errorf("%w: not a signed note", ErrCheckpoint)
	}
	for line := range strings.Lines(string(signed[split+2:])) {
		_, signature, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
		if raw, err := decode64(signature); err != nil || len(raw) < 5 {
			return "", fmt.Errorf("%w: a malformed signature line", ErrCheckpoint)
		}
	}
	return string(signed[:split+1]), nil
}

// Unverified returns the checkpoint in a signed checkpoint. It does not verify the signatures.
func Unverified(signed []byte) (Checkpoint, error) {
	text, err := cutNote(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	return parseText(text)
}

// open verifies a signed checkpoint with keys. It returns the checkpoint and the
// signatures of these keys. If none of these keys has signed, or a signature is
// wrong, it returns an error with the cause ErrSignature.
func open(signed []byte, keys []PublicKey) (Checkpoint, []note.Signature, error) {
	text, err := cutNote(signed)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	c, err := parseText(text)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	var verifiers []note.Verifier
	for _, key := range keys {
		verifiers = append(verifiers, key)
	}
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return c, n.Sigs, nil
}

// stamp returns the time of a verified cosignature.
func stamp(s note.Signature) time.Time {
	raw, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(raw) < 12 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(raw[4:])), 0)
}

// Signer says who made a signature of a checkpoint. The signature itself was not verified.
type Signer struct {
	Name string
	ID   string    // id of the key: eight hexadecimal digits
	At   time.Time // when a witness cosigned; zero for other signatures
}

// The bytes of a cosignature: key id, time and Ed25519 signature. No time is later
// than the year 9999.
const (
	cosignatureSize = 4 + 8 + 64
	latest          = 253402300799 // seconds since the epoch
)

// Signers lists the signatures of a signed checkpoint, without verifying them. For a malformed checkpoint it
// returns an error with the cause ErrCheckpoint.
func Signers(signed []byte) ([]Signer, error) {
	if _, err := Unverified(signed); err != nil {
		return nil, err
	}
	var all []Signer
	lines := signed[bytes.LastIndex(signed, []byte("\n\n"))+2:]
	for line := range strings.Lines(string(lines)) {
		name, signature, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
		raw, err := base64.StdEncoding.DecodeString(signature)
		if err != nil || len(raw) < 4 {
			continue // cannot happen: Unverified refuses a checkpoint with a malformed signature
		}
		s := Signer{Name: name, ID: hex.EncodeToString(raw[:4])}
		if len(raw) == cosignatureSize {
			if at := binary.BigEndian.Uint64(raw[4:]); at <= latest {
				s.At = time.Unix(int64(at), 0).UTC()
			}
		}
		all = append(all, s)
	}
	return all, nil
}

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

// Limits of outside input, in bytes. A reader of a log must not read more from one answer.
const (
	MaxLeaf       = 512                 // a leaf of a log of the registry
	MaxCheckpoint = 64 << 10            // a signed checkpoint
	MaxBundle     = 256 * (2 + MaxLeaf) // an entry bundle
	MaxProof      = 16 << 20            // a proof file, with the asset that it holds
	MaxPolicy     = 256 << 10           // a policy file
)

// MaxSize is the largest number of leaves that a tree may have. The functions of
// tlog do not end for sizes above 2^62.
const MaxSize = int64(1) << 60

var (
	errMalformedHash   = errors.New("malformed hash")
	errMalformedNumber = errors.New("malformed number")
)

// decode64 decodes standard base64. It refuses a text that has line ends, or bits that encode nothing.
func decode64(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && strings.ContainsAny(text, "\r\n") {
		err = errors.New("a line end within base64")
	}
	return raw, err
}

// parseHash reads the base64 form of a hash, and accepts only the form that
// Hash.String prints.
func parseHash(text string) (tlog.Hash, error) {
	raw, err := decode64(text)
	if err != nil || len(raw) != tlog.HashSize {
		return tlog.Hash{}, errMalformedHash
	}
	return tlog.Hash(raw), nil
}

// parseSize reads a decimal number from 0 to MaxSize without leading zeroes.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > MaxSize || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%w %.40q", errMalformedNumber, text)
	}
	return n, nil
}
