package e2e

import (
	"encoding/json"
	"testing"
	"time"
)

// testNewKey creates a key for a new broker. The key must be able to create assets immediately.
func testNewKey(t *testing.T, o *office) {
	broker := o.broker(t)
	_, secret := o.issue(t, broker, nil)
	got := o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(validAsset())}).must(t, 201)
	if owner := got.data()["owner"]; owner != broker {
		t.Errorf("got the owner %v, want %s", owner, broker)
	}
	if got := o.me(t, secret).must(t, 200); got.data()["broker"] != broker || got.data()["accreditations"] != "3" {
		t.Errorf("got %s from /me, want the broker %s and level 3", got.text, broker)
	}
}

// testKeySettings changes a key's levels, test mode and limits. A setting that a request does not name must stay.
func testKeySettings(t *testing.T, o *office) {
	broker := o.broker(t)
	id, secret := o.issue(t, broker, fields{"levels": "1"})
	create := func(f fields) answer {
		return o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(f)})
	}
	create(validAsset()).fails(t, 403, "body/accreditation")
	o.ask(t, "PATCH", "/keys/"+id, fields{"levels": "13", "test": true, "limits": fields{"write": fields{"1s": 50}}}).
		must(t, 200)
	everywhere(t, "the new level permits creation",
		func() bool { return create(validAsset().set("mode", "test")).status == 201 })
	create(validAsset()).fails(t, 403, "body/mode")
	got := o.ask(t, "PATCH", "/keys/"+id, fields{"name": "renamed", "test": false}).must(t, 200)
	if text(at(got.data(), "name")) != "renamed" || text(at(got.data(), "levels")) != "13" ||
		at(got.data(), "limits.write.1s") != json.Number("50") {
		t.Errorf("got %s, want the levels 13 and the limit as they were", got.text)
	}
	got = o.ask(t, "PATCH", "/keys/"+id, fields{"limits": nil}).must(t, 200)
	if at(got.data(), "limits") != nil {
		t.Errorf("got the limits %v after null, want none", at(got.data(), "limits"))
	}
}

// testRotation rotates a key with a grace period, in which the former secret must still work. After a rotation
// without a grace period, only the new secret may work. If a key has five secrets, a rotation with a grace period
// must be refused.
// Promises: rotation, last-used
func testRotation(t *testing.T, o *office) {
	id, first := o.issue(t, o.broker(t), nil)
	o.me(t, first).must(t, 200)
	rotated := o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).must(t, 200)
	second := text(rotated.json["secret"])
	for _, secret := range []string{first, second} {
		if got := o.me(t, secret).must(t, 200); got.data()["key"] != id {
			t.Errorf("the key is %s", got.text)
		}
	}
	soon(t, "the last use of both secrets is listed", 10*time.Second, func() bool {
		got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200)
		return text(at(got.data(), "secrets.0.uses.0.from")) != "" &&
			text(at(got.data(), "secrets.1.uses.0.from")) != ""
	})
	third := text(o.ask(t, "POST", "/keys/"+id+"/rotate", fields{}).must(t, 200).json["secret"])
	for _, former := range []string{first, second} {
		everywhere(t, "each former secret is refused after a rotation without grace",
			func() bool { return o.me(t, former).status == 401 })
	}
	o.me(t, third).must(t, 200)
	for range 4 {
		o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).must(t, 200)
	}
	o.me(t, third).must(t, 200)
	o.ask(t, "POST", "/keys/"+id+"/rotate", fields{"grace": "1h"}).fails(t, 409, "body/grace")
	fourth := text(o.ask(t, "POST", "/keys/"+id+"/rotate", fields{}).must(t, 200).json["secret"])
	soon(t, "a key with five valid secrets can be rotated without grace", inForce,
		func() bool { return o.me(t, third).status == 401 && o.me(t, fourth).status == 200 })
}

// testRevocation revokes a key. No later request may change the revoked key.
func testRevocation(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), nil)
	o.me(t, secret).must(t, 200)
	if got := o.ask(t, "POST", "/keys/"+id+"/revoke", fields{}).must(t, 200); got.data()["state"] != "revoked" {
		t.Errorf("got %s, want the state revoked", got.text)
	}
	everywhere(t, "a revoked key is refused", func() bool { return o.me(t, secret).status == 401 })
	for _, c := range []struct {
		path string
		body any
	}{{"/revoke", fields{}}, {"/rotate", fields{}}} {
		o.ask(t, "POST", "/keys/"+id+c.path, c.body).fails(t, 409, "url/key")
	}
	o.ask(t, "PATCH", "/keys/"+id, fields{"name": "x"}).fails(t, 409, "url/key")
}

// testBlocked blocks and unblocks a broker. The broker's key must be refused, and then be accepted again.
func testBlocked(t *testing.T, o *office) {
	broker := o.broker(t)
	_, secret := o.issue(t, broker, nil)
	o.me(t, secret).must(t, 200)
	o.ask(t, "PATCH", "/brokers/"+broker, fields{"blocked": true}).must(t, 200)
	everywhere(t, "a blocked broker's key is refused", func() bool { return o.me(t, secret).status == 401 })
	o.ask(t, "PATCH", "/brokers/"+broker, fields{"blocked": false}).must(t, 200)
	everywhere(t, "an unblocked broker's key is accepted", func() bool { return o.me(t, secret).status == 200 })
}

// testExpiry uses a key until it expires, and then removes the time of its expiry. The key must then work again.
func testExpiry(t *testing.T, o *office) {
	end := time.Now().Add(1500 * time.Millisecond)
	id, secret := o.issue(t, o.broker(t), fields{"expires": end})
	o.me(t, secret).must(t, 200)
	for asked := time.Now(); o.me(t, secret).status == 200; asked = time.Now() {
		if late := asked.Sub(end); late > 100*time.Millisecond {
			t.Fatalf("got 200 for a request %v after the end, want 401", late)
		}
	}
	if early := time.Until(end); early > 0 {
		t.Errorf("got a refusal %v before the end, want 200", early)
	}
	if got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200); got.data()["state"] != "expired" {
		t.Errorf("got %s, want the state expired", got.text)
	}
	o.ask(t, "PATCH", "/keys/"+id, fields{"expires": nil}).must(t, 200)
	everywhere(t, "a key without an end is accepted", func() bool { return o.me(t, secret).status == 200 })
}

// testAllowList restricts a key to addresses. A header must not be able to fake the client's address.
func testAllowList(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), fields{"allow": []string{"127.0.0.0/8", "::1"}})
	o.me(t, secret).must(t, 200)
	o.ask(t, "PATCH", "/keys/"+id, fields{"allow": []string{"192.0.2.7"}}).must(t, 200)
	everywhere(t, "a request from another address is refused", func() bool { return o.me(t, secret).status == 403 })
	o.me(t, secret).fails(t, 403, "header/Authorization")
	o.do(t, call{method: "GET", path: "/assets", key: secret}).must(t, 200) // reading needs no key
	o.do(t, call{method: "GET", path: "/api/2.5/me", key: secret,
		header: map[string]string{"X-Forwarded-For": "192.0.2.7"}}).fails(t, 403, "header/Authorization")
	o.ask(t, "PATCH", "/keys/"+id, fields{"allow": []string{}}).must(t, 200)
	everywhere(t, "an empty list allows every address", func() bool { return o.me(t, secret).status == 200 })
}

// testRefusedAlike compares the refusals of revoked, expired, rotated and unknown keys. They must be equal, so that
// nobody learns whether a key ever existed.
func testRefusedAlike(t *testing.T, o *office) {
	broker := o.broker(t)
	revokedID, revoked := o.issue(t, broker, nil)
	_, expired := o.issue(t, broker, fields{"expires": time.Now().Add(300 * time.Millisecond)})
	rotatedID, rotated := o.issue(t, broker, nil)
	o.ask(t, "POST", "/keys/"+revokedID+"/revoke", fields{}).must(t, 200)
	o.ask(t, "POST", "/keys/"+rotatedID+"/rotate", fields{}).must(t, 200)
	time.Sleep(300 * time.Millisecond)
	unknown := o.me(t, "unknown").fails(t, 401, "header/Authorization")
	for _, c := range []struct {
		name, key string
	}{{"revoked", revoked}, {"expired", expired}, {"rotated", rotated}, {"an operator's", o.key}} {
		if got := o.me(t, c.key).fails(t, 401, "header/Authorization"); got.text != unknown.text {
			t.Errorf("%s: got %s, want %s as for an unknown key", c.name, got.text, unknown.text)
		}
	}
}

// testUsage checks the number of requests and the time of the last use that the registry keeps for a key.
func testUsage(t *testing.T, o *office) {
	id, secret := o.issue(t, o.broker(t), nil)
	for range 3 {
		o.do(t, call{method: "GET", path: "/assets", key: secret}).must(t, 200)
	}
	o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(validAsset())}).must(t, 201)
	soon(t, "three listings and one write are counted", 10*time.Second, func() bool {
		lists, writes := 0, 0
		for _, day := range list(o.ask(t, "GET", "/keys/"+id+"/usage?days=2", nil).must(t, 200).json["data"]) {
			counts := object(object(day)["counts"])
			lists, writes = lists+number(counts["list"]), writes+number(counts["write"])
		}
		return lists == 3 && writes == 1
	})
	got := o.ask(t, "GET", "/keys/"+id, nil).must(t, 200)
	used, err := time.Parse(time.RFC3339Nano, text(at(got.data(), "secrets.0.uses.0.time")))
	if err != nil || time.Since(used) > time.Minute || text(at(got.data(), "secrets.0.uses.0.from")) != "127.0.0.1" {
		t.Errorf("got %s, %v, want a use from 127.0.0.1 within the last minute", got.text, err)
	}
}

// number returns a JSON number as an int, and 0 for any other value.
func number(value any) int {
	n, _ := value.(json.Number)
	i, _ := n.Int64()
	return int(i)
}
