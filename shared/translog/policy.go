package translog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policy says which checkpoints to trust (tlog-policy): the logs, the witnesses,
// and the quorum of witnesses.
type Policy struct {
	Logs      []PolicyLog
	Witnesses []PolicyWitness
	groups    map[string]group // the groups by their names; a witness counts as a group without members
	members   map[string]bool  // the names that are members of a group
	quorum    string
}

// PolicyLog is a log that the policy trusts.
type PolicyLog struct {
	Key PublicKey
	URL string // "" if the policy has none
}

// PolicyWitness is a witness that the policy knows.
type PolicyWitness struct {
	Name string // name within the policy
	Key  PublicKey
	URL  string // "" if the policy has none
}

type group struct {
	members []string
	least   int
}

// none is the quorum without witnesses.
const none = "none"

// maxNames is the maximum number of logs, witnesses and groups that a policy may have.
const maxNames = 1024

// ErrPolicy is the cause of every error about a policy file.
var ErrPolicy = errors.New("malformed policy")

// LogPolicy returns a policy that trusts keys of logs, whose checkpoints need no
// witness.
func LogPolicy(keys ...PublicKey) (*Policy, error) {
	p := &Policy{quorum: none}
	for _, key := range keys {
		if key.use != ForLog {
			return nil, fmt.Errorf("%w: %q is not the key of a log", ErrPolicy, key.name)
		}
		p.Logs = append(p.Logs, PolicyLog{Key: key})
	}
	return p, nil
}

// ParsePolicy reads a policy file. Its errors have the cause ErrPolicy and name the
// line.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > MaxPolicy {
		return nil, fmt.Errorf("%w: %d bytes", ErrPolicy, len(text))
	}
	p := &Policy{groups: map[string]group{}, members: map[string]bool{}}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if err := p.read(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrPolicy, number, err)
		}
	}
	if p.quorum == "" {
		return nil, fmt.Errorf("%w: no quorum line", ErrPolicy)
	}
	return p, nil
}

// read reads one line.
func (p *Policy) read(line string) error {
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("a control character")
		}
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	if words[0] != "quorum" && len(p.Logs)+len(p.groups) >= maxNames {
		return errors.New("too many names")
	}
	switch count := len(words); {
	case words[0] == "log" && (count == 2 || count == 3):
		return p.addLog(words[1], strings.Join(words[2:], ""))
	case words[0] == "witness" && (count == 3 || count == 4):
		return p.addWitness(words[1], words[2], strings.Join(words[3:], ""))
	case words[0] == "group" && count >= 4:
		return p.addGroup(words[1], words[2], words[3:])
	case words[0] == "quorum" && count == 2:
		return p.setQuorum(words[1])
	default:
		return fmt.Errorf("not a line of a policy: %.40q", line)
	}
}

func (p *Policy) addLog(vkey, url string) error {
	key, err := ParsePublicKey(vkey)
	if err != nil {
		return err
	}
	if key.use != ForLog {
		return fmt.Errorf("the key of a log has type 0x%02x, got 0x%02x", byte(ForLog), byte(key.use))
	}
	if slices.ContainsFunc(p.Logs, func(l PolicyLog) bool { return l.Key.raw == key.raw }) {
		return errors.New("a log with this key stands before")
	}
	p.Logs = append(p.Logs, PolicyLog{key, url})
	return nil
}

func (p *Policy) addWitness(name, vkey, url string) error {
	key, err := ParsePublicKey(vkey)
	if err != nil {
		return err
	}
	if key.use != ForWitness {
		return fmt.Errorf("the key of a witness has type 0x%02x, got 0x%02x", byte(ForWitness), byte(key.use))
	}
	if slices.ContainsFunc(p.Witnesses, func(w PolicyWitness) bool { return w.Key.raw == key.raw }) {
		return errors.New("a witness with this key stands before")
	}
	if err := p.define(name, group{}); err != nil {
		return err
	}
	p.Witnesses = append(p.Witnesses, PolicyWitness{name, key, url})
	return nil
}

func (p *Policy) addGroup(name, least string, members []string) error {
	g := group{members: members}
	switch least {
	case "any":
		g.least = 1
	case "all":
		g.least = len(members)
	default:
		n, err := strconv.Atoi(least)
		if err != nil || strconv.Itoa(n) != least || n < 1 || n > len(members) {
			return fmt.Errorf("a group needs any, all, or a number from 1 to its members, got %.40q", least)
		}
		g.least = n
	}
	for _, member := range members {
		if _, ok := p.groups[member]; !ok {
			return fmt.Errorf("%.40q is not defined before", member)
		}
		if p.members[member] {
			return fmt.Errorf("%.40q is a member already", member)
		}
		p.members[member] = true
	}
	return p.define(name, g)
}

// define adds a name of a witness or a group.
func (p *Policy) define(name string, g group) error {
	if _, ok := p.groups[name]; ok || name == none {
		return fmt.Errorf("%.40q is defined before", name)
	}
	p.groups[name] = g
	return nil
}

func (p *Policy) setQuorum(name string) error {
	if p.quorum != "" {
		return errors.New("a second quorum line")
	}
	if _, ok := p.groups[name]; !ok && name != none {
		return fmt.Errorf("%.40q is not defined before", name)
	}
	p.quorum = name
	return nil
}

// witnessed reports whether the witness or the group with the given name has witnessed a checkpoint. The keys of the
// map `cosigned` are the names of the witnesses that cosigned the checkpoint.
func (p *Policy) witnessed(name string, cosigned map[string]bool) bool {
	g := p.groups[name]
	if len(g.members) == 0 {
		return cosigned[name]
	}
	count := 0
	for _, member := range g.members {
		if p.witnessed(member, cosigned) {
			count++
		}
	}
	return count >= g.least
}

// Signed is a checkpoint with its verified signatures.
type Signed struct {
	Checkpoint
	Cosigners []Cosigner // in the order of the policy
}

// Cosigner is a witness whose cosignature was verified.
type Cosigner struct {
	Name string // name within the policy
	At   time.Time
}

// Open verifies a signed checkpoint. A log of the policy must have signed it under the
// log's own origin. Each signature by a known key must be right, and the quorum must be
// reached. If only the quorum is missing, Open returns the checkpoint and an error with
// the cause ErrQuorum. Other errors have the cause ErrCheckpoint or ErrSignature.
func (p *Policy) Open(checkpoint []byte) (Signed, error) {
	claimed, err := Unverified(checkpoint)
	if err != nil {
		return Signed{}, err
	}
	var keys []PublicKey
	for _, log := range p.Logs {
		if log.Key.name == claimed.Origin {
			keys = append(keys, log.Key)
		}
	}
	if _, _, err := open(checkpoint, keys); err != nil {
		return Signed{}, err
	}
	for _, witness := range p.Witnesses {
		keys = append(keys, witness.Key)
	}
	c, signatures, err := open(checkpoint, keys)
	if err != nil {
		return Signed{}, err
	}
	signed := Signed{Checkpoint: c}
	cosigned := map[string]bool{}
	for _, witness := range p.Witnesses {
		for _, s := range signatures {
			if s.Name == witness.Key.name && s.Hash == witness.Key.hash {
				cosigned[witness.Name] = true
				signed.Cosigners = append(signed.Cosigners, Cosigner{witness.Name, stamp(s)})
			}
		}
	}
	if p.quorum != none && !p.witnessed(p.quorum, cosigned) {
		return signed, ErrQuorum
	}
	return signed, nil
}
