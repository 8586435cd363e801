package httpapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// visitorKey is the key under which a request's context has its *visitor.
const visitorKey = "visitor"

// visitor describes the sender of a request.
type visitor struct {
	addr    netip.Addr // invalid if the request did not come over a network
	known   bool       // the request has a valid API key
	key     authapi.Key
	refusal error  // why the API key is not accepted
	name    string // what nameOf returns; "": not known yet

	enter func() bool // takes a place, if there is one (admit)
	leave func()      // gives the place back, if there is one
}

// Verifying the API key may take only a part of the request's time limit: the limit divided by one of these
// numbers. A read gets the smaller part, because it can continue without a key.
const (
	readKeyShare  = 10 // a read may wait a tenth of its time limit
	writeKeyShare = 4  // a request that needs a key may wait a quarter of its time limit
)

// visitorOf returns the sender of a request. Before identify, the sender has no key.
func visitorOf(c *gin.Context) *visitor {
	if v, known := c.Get(visitorKey); known {
		return v.(*visitor)
	}
	addr, _ := netip.ParseAddr(c.GetHeader(httpserver.ClientHeader))
	v := &visitor{addr: addr}
	c.Set(visitorKey, v)
	return v
}

// caller returns the identity of the caller. It is anonymous if the request has no valid key.
func caller(c *gin.Context) identity.Identity {
	return visitorOf(c).key.Identity
}

// nameOf returns the name by which services share places among callers (package fair): a name for the API key, or for
// the address, whose hash it has. A service of this process that asks for a caller has told the name.
func (a *API) nameOf(c *gin.Context) string {
	v := visitorOf(c)
	switch {
	case v.name != "":
	case v.key.Identity.KeyID != "":
		v.name = "key " + v.key.Identity.KeyID
	case v.addr.IsValid():
		v.name = a.nameOfAddress(v.addr)
	default:
		v.name = c.GetHeader(httpserver.CallerHeader)
	}
	return v.name
}

// nameOfAddress returns the name of a caller without an API key. All addresses of an IPv6 /64 have the same name.
func (a *API) nameOfAddress(addr netip.Addr) string {
	hash := hmac.New(sha256.New, a.addresses)
	network := clientaddr.Network(addr).As16()
	_, _ = hash.Write(network[:]) // never fails
	return "address " + hex.EncodeToString(hash.Sum(nil)[:12])
}

// client returns the client for whom the rate limits count the request.
func client(c *gin.Context) ratelimit.Client {
	v := visitorOf(c)
	return ratelimit.Client{Addr: v.addr, Identity: v.key.Identity, Raise: v.key.Raise, Limits: v.key.Limits}
}

// identify verifies the API key, if the request has one. It refuses nobody, because reading needs no key
// (docs/contract.md, "API keys"); instead it keeps the refusal for needKey. If the route needs a key, it waits
// longer for authsvc. Wrong keys count for the address that sent them; after too many, no key from this address
// is verified for a while.
func (a *API) identify(needed bool) step {
	within := a.config.Timeout / readKeyShare
	if needed {
		within = a.config.Timeout / writeKeyShare
	}
	return check(func(c *gin.Context) error {
		if c.GetHeader("Authorization") == "" || a.isMirror() {
			return nil
		}
		v := visitorOf(c)
		k, err := a.verify(c, v.addr, within)
		switch {
		case err == nil:
			v.key, v.known = k, true
			httpserver.SetCaller(c, k.Identity)
			a.config.Usage.Used(k, v.addr)
			return nil
		case fault.KindOf(err) == fault.Internal:
			_ = c.Error(err) // logged here, because a read may still succeed without the key
			err = fault.New(fault.Unavailable, fault.URL, "authorization", "Keys cannot be checked now; repeat the request.")
		case fault.KindOf(err) == fault.Unavailable:
			_ = c.Error(err)
		}
		v.refusal = err
		return nil
	})
}

// verify returns the API key of the request, if it is valid and may be used from the client's address. A call to
// authsvc may take at most the time in the argument `within`.
func (a *API) verify(c *gin.Context, addr netip.Addr, within time.Duration) (authapi.Key, error) {
	guesser := a.guesserOf(c.Request, addr)
	if err := a.config.Limits.CheckLockout(c.Request.Context(), guesser); err != nil {
		return authapi.Key{}, err
	}
	k, err := a.key(c.Request, within)
	if err == nil && !k.Allows(addr) {
		err = fault.New(fault.Forbidden, fault.Header, "Authorization",
			"This API key may not be used from the address %s.", addr)
	}
	if err == nil {
		return k, nil
	}
	if fault.KindOf(err) == fault.Unauthorized {
		if over := a.config.Limits.CountWrongKey(c.Request.Context(), c.Writer.Header(), guesser); over != nil {
			return authapi.Key{}, over
		}
	}
	return authapi.Key{}, err
}

// guesserOf returns the address for which wrong keys count. Wrong keys from a web page count for the page's origin
// together with the address: otherwise a page could lock out everybody who shares an address with a reader of the
// page. For this, guesserOf makes up a local address (RFC 4193) that nobody has. The origins at an address get 256 such
// addresses of one prefix, so that ever new origins fill no table. Nobody knows which origins share one, because a
// secret chooses it.
func (a *API) guesserOf(r *http.Request, addr netip.Addr) netip.Addr {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return addr
	}
	network := clientaddr.Network(addr).String()
	of, page := sha256.Sum256([]byte(network)), hmac.New(sha256.New, bytes.Join(a.config.Secrets, nil))
	page.Write([]byte(network + " " + origin))
	made := [16]byte{0xfd}
	copy(made[1:7], of[:])
	made[7] = page.Sum(nil)[0]
	return netip.AddrFrom16(made)
}

// key returns the API key of a request, verified from the cache or by authsvc.
func (a *API) key(r *http.Request, within time.Duration) (authapi.Key, error) {
	hash, err := apikey.Hash(r.Header)
	if err != nil {
		return authapi.Key{}, err
	}
	if k, known, err := a.config.Keys.Recall(hash); known {
		return k, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	return a.config.Keys.VerifyKey(ctx, hash)
}

// needKey refuses a request that has no valid API key. The request must have passed identify.
func needKey(c *gin.Context) error {
	v := visitorOf(c)
	if v.known {
		return nil
	}
	if v.refusal != nil {
		return v.refusal
	}
	_, missing := apikey.Hash(c.Request.Header)
	return missing
}

// lockout refuses a request that needs a key, if its address has sent too many wrong keys. It comes before the
// rate limits, whose refusal would name a shorter time to wait. The request must have passed identify.
func (a *API) lockout(class routes.Class) step {
	return check(func(c *gin.Context) error {
		refusal := visitorOf(c).refusal
		if fault.KindOf(refusal) != fault.TooMany {
			return nil
		}
		a.config.Limits.Count(class, refusal)
		return refusal
	})
}

// limit applies the rate limits to a request. If the request writes, it also counts the declared size of the
// body. The request must have passed identify.
func (a *API) limit(class routes.Class) step {
	return check(func(c *gin.Context) error {
		r := ratelimit.Request{Class: class, Client: client(c)}
		if class == routes.Write {
			r.Body = max(0, a.declaredSize(c)) // if the length is unknown, limitBody counts the body
		}
		err := a.config.Limits.Admit(c.Request.Context(), c.Writer.Header(), r)
		a.config.Limits.Count(class, err)
		if err != nil {
			return err
		}
		if i := r.Client.Identity; !i.IsAnonymous() {
			a.config.Usage.Count(i.KeyID, string(class))
		}
		return nil
	})
}

// limitBody applies the rate limits to a body whose length was not declared.
func (a *API) limitBody(c *gin.Context, size int64) error {
	r := ratelimit.Request{Class: ratelimit.Bytes, Client: client(c), Body: size}
	err := a.config.Limits.Admit(c.Request.Context(), c.Writer.Header(), r)
	if err != nil {
		a.config.Limits.Count(routes.Write, err)
	}
	return err
}

// me answers with the identity of the caller, and with what is left of the caller's rate limits. The rate
// limits also count this request.
func (a *API) me(c *gin.Context) error {
	quotas, err := a.config.Limits.Quotas(c.Request.Context(), c.Writer.Header(), client(c))
	if err != nil {
		return err
	}
	i := caller(c)
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, http.StatusOK, gin.H{"data": gin.H{
		"broker": i.Broker, "key": i.KeyID, "role": i.Role, "accreditations": i.Levels, "limits": quotas,
	}})
}

// cookieName is the cookie that names the registry's data. It does not name a process: any gateway answers any
// request. A synchroniser starts over when the value changes (docs/contract.md, "Server cookie"). The operator
// changes the value when older or different data replace the data.
const cookieName = "SERVER_ID"

// serverCookie returns the value of Set-Cookie. The argument `id` names the registry's data.
func serverCookie(id string) string {
	cookie := http.Cookie{Name: cookieName, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	return cookie.String()
}

// checkCookie sets the cookie for a client that has none. If a client has the cookie of different data, the answer
// depends on the request:
//
//   - a write: 412 with the new cookie;
//   - a page of the feed after an offset: 404 with the new cookie;
//   - the first page of the feed: no refusal, and the new cookie;
//   - any other read: no refusal, and no new cookie. With the new cookie the
//     client would continue in the feed from its old offset.
func (a *API) checkCookie(c *gin.Context) error {
	cookie, err := c.Request.Cookie(cookieName)
	if err == nil && cookie.Value == a.config.ServerID {
		return nil
	}
	hasCookie := err == nil
	if hasCookie && isRead(c.Request) && !isList(c) {
		return nil
	}
	c.Writer.Header()["Set-Cookie"] = a.cookie
	switch {
	case !hasCookie:
		return nil
	case !isRead(c.Request):
		return fault.New(fault.Precondition, fault.URL, "precondition",
			"The server of your cookie is gone; repeat the request with the new one.")
	case c.Query("offset") != "" || c.GetHeader(lastEventID) != "":
		return fault.New(fault.NotFound, fault.Query, "offset",
			"Offset expired/invalid: it belongs to other data, as your cookie SERVER_ID does. "+
				"Start over without an offset, with the new cookie.")
	}
	return nil
}
