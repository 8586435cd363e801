package admin

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"asset-registry/shared/adminapi"
)

const checkPage = 500 // entries or records read at a time

// Check goes through the whole audit log: that each entry follows from the one
// before and was sealed by this registry, and that every key and broker is as
// its last entry says. So a change of the store behind the registry's back is
// found, and a tail that was cut off, unless the changes it told of were undone
// as well: for that a client keeps the head it has seen (adminapi.Follow).
//
// It reads all there is, so a process does it once at a time; others wait.
func (s *Service) Check(ctx context.Context) (adminapi.Verification, error) {
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return adminapi.Verification{}, fmt.Errorf("check audit log: %w", ctx.Err())
	}
	for try := 0; ; try++ {
		found, err := s.check(ctx)
		if err != nil {
			return found, fmt.Errorf("check audit log: %w", err)
		}
		head, err := s.store.Head(ctx)
		if err != nil {
			return found, fmt.Errorf("check audit log: %w", err)
		}
		// What was changed amid the check may look wrong, and be right.
		if len(found.Problems) == 0 || head.Seq == found.Entries || try == attempts {
			s.found.record(ctx, len(found.Problems), s.now())
			return found, nil
		}
	}
}

// lastTold is what the last entry about a key or broker says of it: of a long
// log, no more is kept.
type lastTold struct {
	seq   int64
	after [sha256.Size]byte
}

func (s *Service) check(ctx context.Context) (adminapi.Verification, error) {
	chain, last := adminapi.Follow(adminapi.Head{}), map[string]lastTold{}
	problems := []string{}
	for {
		entries, err := s.store.Entries(ctx, chain.Head.Seq, checkPage)
		if err != nil {
			return adminapi.Verification{}, err
		}
		for _, e := range entries {
			chain.Add(e)
			if fault := s.sealer.fault(e); fault != "" {
				problems = append(problems, fmt.Sprintf("entry %d %s", e.Seq, fault))
			}
			last[e.Subject] = lastTold{e.Seq, sha256.Sum256(e.After)}
		}
		if len(entries) < checkPage {
			break
		}
	}
	problems = append(problems, chain.End()...)
	head, err := s.store.Head(ctx)
	if err != nil {
		return adminapi.Verification{}, err
	}
	if head != chain.Head {
		problems = append(problems, fmt.Sprintf("the log ends with entry %d, and should with %d", chain.Head.Seq, head.Seq))
	}
	compare := func(subject string, record any) error {
		text, err := told(record)
		if err != nil {
			return err
		}
		e, there := last[subject]
		delete(last, subject)
		if !there {
			problems = append(problems, fmt.Sprintf("no entry tells of %s", subject))
		} else if sha256.Sum256(text) != e.after {
			problems = append(problems, fmt.Sprintf("%s is not as entry %d, the last about it, says", subject, e.seq))
		}
		return nil
	}
	for after := ""; ; {
		keys, err := s.store.Keys(ctx, after, checkPage)
		if err != nil {
			return adminapi.Verification{}, err
		}
		for _, k := range keys {
			after = k.ID
			if err := compare(ofKey+k.ID, viewKey(k)); err != nil {
				return adminapi.Verification{}, err
			}
		}
		if len(keys) < checkPage {
			break
		}
	}
	for after := ""; ; {
		brokers, err := s.store.Brokers(ctx, after, checkPage)
		if err != nil {
			return adminapi.Verification{}, err
		}
		for _, b := range brokers {
			after = b.Name
			if err := compare(ofBroker+b.Name, viewBroker(b)); err != nil {
				return adminapi.Verification{}, err
			}
		}
		if len(brokers) < checkPage {
			break
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(last)) {
		problems = append(problems, fmt.Sprintf("%s, that entry %d tells of, is gone", subject, last[subject].seq))
	}
	return adminapi.Verification{Entries: chain.Head.Seq, Head: chain.Head.Hash, Problems: problems}, nil
}
