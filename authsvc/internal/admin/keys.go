package admin

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Key returns a key with its state and last uses, or a fault of kind NotFound.
func (s *Service) Key(ctx context.Context, id string) (adminapi.Key, error) {
	k, err := s.key(ctx, id)
	if err != nil {
		return adminapi.Key{}, err
	}
	return s.show(ctx, k)
}

func (s *Service) key(ctx context.Context, id string) (apikey.Key, error) {
	k, err := s.store.Key(ctx, id)
	if errors.Is(err, apikey.ErrNotFound) {
		return k, fault.New(fault.NotFound, fault.URL, "key", "Not Found")
	}
	return k, err
}

// CreateKey creates a key and returns it with its secret, which the registry does not store. Its fault lists
// everything wrong with n. The argument `unread` has more details for the fault, about fields of the request that
// could not be read.
func (s *Service) CreateKey(
	ctx context.Context, by Actor, n adminapi.NewKey, unread ...fault.Detail,
) (made adminapi.Key, secret string, err error) {
	secret, hash := newSecret()
	var k apikey.Key
	err = s.change(ctx, by, audit.CreateKey, func(now time.Time) (Change, error) {
		found := problems.Of(unread...)
		k = apikey.Key{
			ID: newID(now), Broker: n.Broker, Settings: readSettings(n.KeySettings, found), Created: now, Modified: now,
			Secrets: []apikey.Secret{{Number: 1, Hash: hash, Created: now}},
		}
		if err := s.checkNew(ctx, k, now, found); err != nil {
			return Change{}, err
		}
		return keyChange(nil, &k, hash)
	})
	if err != nil {
		return made, "", err
	}
	return s.showChanged(ctx, k), secret, nil
}

func newSecret() (secret, hash string) {
	secret = apikey.New()
	return secret, authapi.Hash(secret)
}

// newID returns a unique id. The id of a later key sorts after the id of an earlier key.
func newID(now time.Time) string {
	var bits [10]byte
	binary.BigEndian.PutUint32(bits[:4], uint32(now.Unix()))
	rand.Read(bits[4:]) // never fails
	return "key-" + strings.ToLower(base32.HexEncoding.EncodeToString(bits[:]))
}

// expiresTooEarly is the text of the fault for a new key whose expiry is in the past. Such a key would never be valid.
const expiresTooEarly = "This time is in the past."

// checkNew returns a fault that lists everything wrong with a new key. The fault begins with the problems that the
// argument `found` already has.
func (s *Service) checkNew(ctx context.Context, k apikey.Key, now time.Time, found *problems.List) error {
	if err := found.Take(k.Check()); err != nil {
		return err
	}
	if expires := k.Settings.Expires; !expires.IsZero() && !expires.After(now) {
		found.Add("expires", expiresTooEarly)
	}
	if k.Broker != "" {
		if _, err := s.store.Broker(ctx, k.Broker); errors.Is(err, apikey.ErrNotFound) {
			found.Add("broker", "There is no such broker. Create it first.")
		} else if err != nil {
			return err
		}
	}
	return found.Err()
}

// ChangeKey changes the settings of a key with the function `patch`. If patch cannot read some fields, it returns
// a fault of kind Invalid. ChangeKey then checks the other fields as well, and returns one fault about all of
// them.
func (s *Service) ChangeKey(
	ctx context.Context, by Actor, id string, patch func(*adminapi.KeySettings) error,
) (adminapi.Key, error) {
	edit := keyEdit{action: audit.ChangeKey, id: id}
	return s.changeKey(ctx, by, edit, func(k apikey.Key, now time.Time) (apikey.Key, error) {
		v := k.Settings.View()
		found, err := patched(patch(&v))
		if err != nil {
			return k, err
		}
		k, err = k.Set(readSettings(v, found), now)
		return k, found.With(err)
	})
}

// RotateKey gives a key a new secret and returns it. Former secrets stay valid for the grace period at most; if
// grace is 0, all of them end immediately. The fault lists everything wrong with the request. The argument
// `unread` has more details for the fault, about fields that could not be read.
func (s *Service) RotateKey(
	ctx context.Context, by Actor, id string, grace time.Duration, unread ...fault.Detail,
) (made adminapi.Key, secret string, err error) {
	secret, hash := newSecret()
	edit := keyEdit{action: audit.RotateKey, id: id, newHash: hash}
	made, err = s.changeKey(ctx, by, edit, func(k apikey.Key, now time.Time) (apikey.Key, error) {
		found := problems.Of(unread...)
		k, err := k.Rotate(hash, grace, now)
		return k, found.With(err)
	})
	if err != nil {
		return made, "", err
	}
	return made, secret, nil
}

// RevokeKey ends a key immediately and for ever.
func (s *Service) RevokeKey(ctx context.Context, by Actor, id string) (adminapi.Key, error) {
	return s.changeKey(ctx, by, keyEdit{action: audit.RevokeKey, id: id}, apikey.Key.Revoke)
}

// keyEdit names a change of an existing key.
type keyEdit struct {
	action  string
	id      string
	newHash string // hash of a secret that the change adds; "": none
}

func (s *Service) changeKey(
	ctx context.Context, by Actor, edit keyEdit, work func(apikey.Key, time.Time) (apikey.Key, error),
) (adminapi.Key, error) {
	var after apikey.Key
	err := s.change(ctx, by, edit.action, func(now time.Time) (Change, error) {
		before, err := s.key(ctx, edit.id)
		if err != nil {
			return Change{}, err
		}
		if after, err = work(before, now); err != nil {
			return Change{}, err
		}
		return keyChange(&before, &after, edit.newHash)
	})
	if err != nil {
		return adminapi.Key{}, err
	}
	return s.showChanged(ctx, after), nil
}

// showChanged returns a changed key as the admin API shows it. The change is stored already, and only this
// answer can show the new secret. So if the store fails now, showChanged returns the key without its state and
// uses.
func (s *Service) showChanged(ctx context.Context, k apikey.Key) adminapi.Key {
	made, err := s.show(ctx, k)
	if err != nil {
		s.log.Warn("show a changed key without its state and uses", "key", k.ID, "error", err)
		return k.View()
	}
	return made
}

// keyChange describes a change of a key. The argument `before` is nil for a new key.
func keyChange(before, after *apikey.Key, newHash string) (c Change, err error) {
	c.Key, c.NewHash, c.Entry.Subject = after, newHash, audit.OfKey(after.ID)
	if before != nil {
		if c.Entry.Before, err = audit.Encode(before.View()); err != nil {
			return c, err
		}
	}
	c.Entry.After, err = audit.Encode(after.View())
	return c, err
}

// readSettings reads the settings of a request. For each field that it cannot read, it adds a problem to the argument
// `found`.
func readSettings(v adminapi.KeySettings, found *problems.List) apikey.Settings {
	s := apikey.Settings{
		Name: v.Name, Role: identity.Role(v.Role), Levels: v.Levels, Test: v.Test, Limits: v.Limits,
	}
	if v.Expires != nil {
		s.Expires = v.Expires.UTC().Truncate(time.Microsecond)
		if s.Expires.IsZero() { // a zero time would mean that the key never expires
			found.Add("expires", expiresTooEarly)
		}
	}
	for i, text := range v.Allow {
		prefix, err := netip.ParsePrefix(text)
		if addr, bad := netip.ParseAddr(text); err != nil && bad == nil {
			prefix, err = addr.Unmap().Prefix(addr.Unmap().BitLen())
		}
		if err != nil {
			found.Add("allow."+strconv.Itoa(i), "%.50q is neither an address nor a network such as 192.0.2.0/24.", text)
		}
		s.Allow = append(s.Allow, prefix.Masked())
	}
	return s
}
