package registryctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"asset-registry/shared/durable"
	"asset-registry/shared/logclient"
	"asset-registry/shared/translog"
)

// parallel is the greatest number of requests that one verification sends at the same time.
const parallel = 8

type verifyLog struct {
	File     string `arg:"" optional:"" in:"" help:"Proof that prove wrote or a page saved. It is checked offline."`
	trust    `embed:""`
	Log      string `placeholder:"URL" help:"Address of the log, by default URL/log of the registry's address."`
	Remember string `placeholder:"FILE" out:"" help:"File that remembers the checkpoint. The next log must continue it."`
	Assets   bool   `help:"Compare each leaf with the registry's assets, too."`
	Files    bool   `help:"Fetch each file of the assets' documents, too, and compare it with what the log covers."`
}

// Help returns the long help of the command.
func (verifyLog) Help() string {
	return `With FILE, the command checks one proof offline. Without it, it reads the whole public log: the
signature, the witnesses, each leaf and each tile, and that the log continues the remembered checkpoint.

--assets asks the registry for the proof of each leaf, and compares the newest ones with the assets and the
list as they are now. Without --url, the registry is at the address of --log, without /log. An API key raises
the rate limits. A proof takes a few milliseconds of the registry; the command shows how far it is. Memory
grows with the number of assets.

--files does that too, and then fetches the file of each document that has a sha256, once, and compares its
bytes with sha256, size and hash of the document. The log covers these. Files that were taken down and
documents with foreign addresses are counted.

If the log does not continue the remembered checkpoint, the new one is kept beside it, in a file that ends
with .conflict. Both together prove the fault to everyone.`
}

// Run verifies a proof, or the whole log.
func (v verifyLog) Run(ctx context.Context, p *program) error {
	policy, err := v.policy()
	if err != nil {
		return err
	}
	if v.File == "" {
		return v.whole(ctx, p, policy)
	}
	if v.Log != "" || v.Remember != "" || v.Assets || v.Files {
		return errors.New("--log, --remember, --assets and --files are for a whole log: leave out FILE")
	}
	return p.verifyProof(v.File, policy)
}

// logReport is the result of verifying a whole log.
type logReport struct {
	Origin    string          `json:"origin"`
	Size      int64           `json:"size"`
	Root      string          `json:"root"`
	Cosigned  []string        `json:"cosigned"`
	Continues *int64          `json:"continues,omitempty"` // the remembered size
	Registry  *registryReport `json:"registry,omitempty"`
}

// The method `whole` verifies the whole public log (docs/log.md, "Verification").
func (v verifyLog) whole(ctx context.Context, p *program, policy *translog.Policy) error {
	if v.Log == "" {
		v.Log = strings.TrimSuffix(p.URL, "/") + "/log"
	} else if !p.urlGiven {
		p.URL = registryOf(v.Log)
	}
	older, known, err := readRemembered(v.Remember)
	if err != nil {
		return err
	}
	source, err := newKeepingSource(v.Log)
	if err != nil {
		return err
	}
	progress := progress{newLine(p.errOut), source}
	defer progress.end()
	verifier := translog.Verifier{Policy: policy, Remembered: older, Ahead: parallel, Leaf: progress.leaf}
	var signed translog.Signed
	var compared *registryReport
	if v.Assets || v.Files {
		signed, compared, err = compareAssets(ctx, p, verifier, progress, v.Files)
	} else {
		signed, err = verifier.Verify(ctx, source)
	}
	progress.end()
	if ctx.Err() != nil {
		return errors.New("interrupted before the whole log was verified")
	}
	if err != nil {
		return v.keepConflict(source, err)
	}
	if v.Remember != "" {
		if err := durable.WriteFile(v.Remember, source.checkpoint); err != nil {
			return fmt.Errorf("remember the checkpoint: %w", err)
		}
	}
	report := logReport{signed.Origin, signed.Size, signed.Root.String(), cosigners(signed), nil, compared}
	if known {
		report.Continues = &older.Size
	}
	return p.report(report)
}

// keepConflict stores the newest checkpoint in a file if the log does not continue the remembered checkpoint.
// It returns err, extended with the names of the files.
func (v verifyLog) keepConflict(source *keepingSource, err error) error {
	if v.Remember == "" || !errors.Is(err, translog.ErrConsistency) {
		return err
	}
	file := v.Remember + ".conflict"
	if err2 := durable.WriteFile(file, source.checkpoint); err2 != nil {
		return errors.Join(err, fmt.Errorf("keep the checkpoint: %w", err2))
	}
	return fmt.Errorf("%w; keep %s and %s as evidence", err, v.Remember, file)
}

// readRemembered returns the checkpoint in a file. The result `known` is false if the file does not exist. The
// signatures of the checkpoint were verified when it was remembered, perhaps with keys that are retired now, so
// they are not verified again.
func readRemembered(file string) (c translog.Checkpoint, known bool, err error) {
	if file == "" {
		return c, false, nil
	}
	signed, err := readUpTo(file, translog.MaxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the remembered checkpoint: %w", err)
	}
	if c, err = translog.Unverified(signed); err != nil {
		return c, false, fmt.Errorf("%s holds no checkpoint: remove it to forget the log", file)
	}
	return c, true, nil
}

// registryOf returns the address of the registry that serves the log at the given address.
func registryOf(log string) string {
	log = strings.TrimSuffix(log, "/")
	if at := strings.LastIndex(log+"/", "/log/"); at >= 0 {
		return log[:at]
	}
	return log
}

// keepingSource remembers the checkpoint that it reads.
type keepingSource struct {
	*logclient.Source
	checkpoint []byte
	parsed     translog.Checkpoint // its signatures are not verified
}

func newKeepingSource(prefix string) (*keepingSource, error) {
	source, err := logclient.NewSource(prefix, newTransport())
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	return &keepingSource{Source: source}, nil
}

// newTransport returns a transport that keeps enough connections open for parallel requests.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 2 * parallel
	return transport
}

// ReadCheckpoint returns the newest signed checkpoint. A log without a checkpoint has no leaves yet.
func (s *keepingSource) ReadCheckpoint(ctx context.Context) ([]byte, error) {
	signed, err := s.Source.ReadCheckpoint(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the log has no checkpoint: %w", err)
	}
	if err != nil {
		return nil, err
	}
	s.checkpoint = signed
	s.parsed, _ = translog.Unverified(signed) // the verifier reports the error
	return signed, nil
}

// progress shows the number of verified leaves, and the average time for a leaf.
type progress struct {
	*line
	source *keepingSource
}

// leaf counts a leaf. It always returns nil.
func (p progress) leaf(index int64, _ translog.Leaf) error {
	p.show(func(in time.Duration) string {
		each := float64(in.Microseconds()) / 1000 / float64(index+1)
		return fmt.Sprintf("%d of %d leaves, %.1f ms a leaf", index+1, p.source.parsed.Size, each)
	})
	return nil
}

// timeOf formats a position as a time in UTC.
func timeOf(position int64) string {
	return time.UnixMicro(position).UTC().Format("2006-01-02 15:04:05.000000")
}

// trust has the flags that say which checkpoints the user trusts.
type trust struct {
	PublicKey []string `sep:"none" placeholder:"KEY" help:"Public key of the log. May be repeated."`
	Policy    string   `placeholder:"FILE" in:"" help:"Policy file (C2SP tlog-policy) with the log's key and witnesses."`
}

// policy returns the policy that the flags describe.
func (t trust) policy() (*translog.Policy, error) {
	switch {
	case t.Policy != "" && len(t.PublicKey) > 0:
		return nil, errors.New("--public-key and --policy exclude each other")
	case t.Policy != "":
		return logclient.ReadPolicy(t.Policy)
	case len(t.PublicKey) == 0:
		return nil, errors.New("name the log's public key with --public-key, or a policy file with --policy")
	}
	var keys []translog.PublicKey
	for _, text := range t.PublicKey {
		key, err := translog.ParsePublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("--public-key must be the whole line NAME+ID+KEY that the log's operator gives: %w", err)
		}
		keys = append(keys, key)
	}
	return translog.LogPolicy(keys...)
}

// readUpTo reads a file of at most `limit` bytes.
func readUpTo(file string, limit int64) ([]byte, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", file, limit)
	}
	return text, nil
}

// cosigners returns the names of the witnesses that cosigned a checkpoint.
func cosigners(c translog.Signed) []string {
	names := []string{}
	for _, cosigner := range c.Cosigners {
		names = append(names, cosigner.Name)
	}
	return names
}
