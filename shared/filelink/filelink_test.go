package filelink

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

const (
	id  = "0123456789abcdef0123456789abcdef"
	md5 = "d41d8cd98f00b204e9800998ecf8427e"
)

var now = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, keyring.MinLength) }

func signer(t *testing.T, secrets ...[]byte) *Signer {
	t.Helper()
	s, err := NewSigner(secrets)
	expect.OK(t, err)
	return s
}

func TestSignatures(t *testing.T) {
	s, other := signer(t, secret(1)), signer(t, secret(2))
	another := strings.Repeat("0", 32)
	with := func(q url.Values, name, value string) url.Values {
		q.Set(name, value)
		return q
	}
	without := func(q url.Values, name string) url.Values {
		q.Del(name)
		return q
	}
	read := s.Read(id, now)
	for _, c := range []struct {
		name string
		got  error
		want string // the refusal; "": none
	}{
		{"bind", s.CheckBind(id, md5, s.Bind(id, md5)), ""},
		{"upload", s.CheckUpload(id, s.Upload(id)), ""},
		{"read", s.CheckRead(id, s.Read(id, now), now), ""},
		{"without a key id", s.CheckUpload(id, without(s.Upload(id), "KeyID")), ""},
		{"read within the grace", s.CheckRead(id, read, now.Add(Lifetime+grace)), ""},
		{"read when it has expired", s.CheckRead(id, read, now.Add(Lifetime+grace+time.Second)),
			"url/Expires: Request has expired"},
		{"read by a clock a minute ahead", s.CheckRead(id, s.Read(id, now.Add(time.Minute)), now), ""},
		{"read by a clock a minute behind", s.CheckRead(id, s.Read(id, now.Add(-time.Minute)), now), ""},
		{"read by a clock a day ahead", s.CheckRead(id, s.Read(id, now.AddDate(0, 0, 1)), now), "url/Expires: Request has expired"},
		{"read by a clock a day behind", s.CheckRead(id, s.Read(id, now.AddDate(0, 0, -1)), now), "url/Expires: Request has expired"},
		{"read by a clock ten years ahead", s.CheckRead(id, s.Read(id, now.AddDate(10, 0, 0)), now), "url/Expires: Request has expired"},
		{"read by a clock ten years behind", s.CheckRead(id, s.Read(id, now.AddDate(-10, 0, 0)), now),
			"url/Expires: Request has expired"},
		{"read with a later time", s.CheckRead(id, with(s.Read(id, now), "Expires", "99999999999"), now),
			"url/Signature: Signature does not match"},
		{"read without a time", s.CheckRead(id, without(s.Read(id, now), "Expires"), now),
			"url/Signature: Signature does not match"},
		{"bind another file", s.CheckBind(another, md5, s.Bind(id, md5)), "url/Signature: Signature does not match"},
		{"bind with another hash", s.CheckBind(id, another, s.Bind(id, md5)), "url/Signature: Signature does not match"},
		{"bind with the right to upload", s.CheckBind(id, "", s.Upload(id)), "url/Signature: Signature does not match"},
		{"upload with the right to bind", s.CheckUpload(id, s.Bind(id, "")), "url/Signature: Signature does not match"},
		{"read with the right to bind", s.CheckRead(id, s.Bind(id, ""), now), "url/Signature: Signature does not match"},
		{"no signature", s.CheckUpload(id, url.Values{}), "url/Signature: Not Found"},
		{"an empty signature", s.CheckUpload(id, url.Values{"Signature": {""}}), "url/Signature: Signature does not match"},
		{"no base64", s.CheckUpload(id, url.Values{"Signature": {"!"}}), "url/Signature: Signature invalid"},
		{"an unknown key", s.CheckUpload(id, with(s.Upload(id), "KeyID", "test")), "url/KeyID: Key Id does not exist"},
		{"another registry's", s.CheckUpload(id, other.Upload(id)), "url/KeyID: Key Id does not exist"},
		{"another registry's with our key id",
			s.CheckUpload(id, with(other.Upload(id), "KeyID", s.Upload(id).Get("KeyID"))),
			"url/Signature: Signature does not match"},
	} {
		got := ""
		if c.got != nil {
			got = c.got.Error()
		}
		expect.Equal(t, got, c.want, "%s", c.name)
	}
}

// TestRotation takes the three steps of a rotation (package keyring). Services
// before and after each step must accept each other's signatures.
func TestRotation(t *testing.T) {
	before := signer(t, secret(1))
	added, turned := signer(t, secret(1), secret(2)), signer(t, secret(2), secret(1))
	after := signer(t, secret(2))
	for _, c := range []struct {
		name       string
		signs, by  *Signer
		isAccepted bool
	}{
		{"old by both", before, added, true}, {"old by both, turned", before, turned, true},
		{"new by both", turned, added, true}, {"new by new", turned, after, true},
		{"old by new", before, after, false}, {"new by old", turned, before, false},
	} {
		if err := c.by.CheckUpload(id, c.signs.Upload(id)); (err == nil) != c.isAccepted {
			t.Errorf("%s: got %v, want accepted: %t", c.name, err, c.isAccepted)
		}
	}
}

func TestAddresses(t *testing.T) {
	const base Base = "https://registry.example"
	for _, c := range []struct {
		name, address, id string
		base              Base
		isOurs            bool
		signature         string
	}{
		{"ours", base.Address(id), id, base, true, ""},
		{"ours with a signature", base.Address(id) + "?Signature=x&KeyID=y", id, base, true, "x"},
		{"ours with a bad query", base.Address(id) + "?Signature=%zz", id, base, true, ""},
		{"ours in upper case", "HTTPS://REGISTRY.Example/get/" + id, id, base, true, ""},
		{"ours with the port", "https://registry.example:443/get/" + id, id, base, true, ""},
		{"ours with the root", "https://registry.example./get/" + id, id, base, true, ""},
		{"ours with escapes", "https://registry.example/%67et/%30" + id[1:], id, base, true, ""},
		{"ours with dots", "https://registry.example/x/../get//" + id, id, base, true, ""},
		{"ours with a fragment", base.Address(id) + "#x", id, base, true, ""},
		{"ours with a user", "https://x@registry.example/get/" + id, id, base, true, ""},
		{"an id in upper case", base.Address(strings.ToUpper(id[:31]) + "A"), "", base, true, ""},
		{"a longer path", base.Address(id) + "/x", "", base, true, ""},
		{"below a path", "https://example.com/registry/get/" + id, id, "https://example.com/registry", true, ""},
		{"another path of ours", "https://registry.example/docs", "", base, false, ""},
		{"another host", "https://registry.example.com/get/" + id, "", base, false, ""},
		{"another port", "https://registry.example:8443/get/" + id, "", base, false, ""},
		{"another scheme", "http://registry.example/get/" + id, "", base, false, ""},
		{"no address", "https://registry.example/get/%zz", "", base, false, ""},
		{"no base", "/get/" + id, "", "", false, ""},
	} {
		got, q, isOurs := c.base.Parse(c.address)
		if isOurs != c.isOurs || got != c.id || q.Get("Signature") != c.signature {
			t.Errorf("%s: got %q, %v, %t, want %q, ours: %t, with %q",
				c.name, got, q, isOurs, c.id, c.isOurs, c.signature)
		}
	}
}
