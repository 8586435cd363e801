package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// visitorKey is where a request's context has its *visitor.
const visitorKey = "visitor"

// visitor is whom a request comes from.
type visitor struct {
	addr    netip.Addr // invalid if the request did not come over a network
	known   bool       // it has a valid API key
	key     authapi.Key
	refusal error // why the API key is not accepted
}

// Verifying the API key may take this part of the request's time limit. A read
// goes on without a key, so it waits for a shorter time than a write.
const (
	readKeyShare  = 10 // 1/10 for a read
	writeKeyShare = 4  // 1/4 for a write
)

// visitorOf returns whom a request comes from. Before identify it has no key.
func visitorOf(c *gin.Context) *visitor {
	if v, known := c.Get(visitorKey); known {
		return v.(*visitor)
	}
	addr, _ := netip.ParseAddr(c.GetHeader(httpserver.ClientHeader))
	v := &visitor{addr: addr}
	c.Set(visitorKey, v)
	return v
}

// caller returns the identity of the caller; anonymous without a valid key.
func caller(c *gin.Context) identity.Identity {
	return visitorOf(c).key.Identity
}

// client returns whom the rate limits count the request for.
func client(c *gin.Context) ratelimit.Client {
	v := visitorOf(c)
	return ratelimit.Client{Addr: v.addr, Identity: v.key.Identity}
}

// identify verifies the API key, if the request has one. It refuses nobody,
// because reading needs no key (docs/contract.md, "API keys"); it stores the
// refusal for needKey. A call to authsvc takes at most within. Wrong keys count
// per address; after too many, no key from that address is verified for a while.
func (s *Server) identify(within time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.GetHeader("Authorization") == "" || s.config.Mirror != nil {
			return
		}
		v := visitorOf(c)
		k, err := s.verify(c, v.addr, within)
		switch {
		case err == nil:
			v.key, v.known = k, true
			httpserver.SetTenant(c, string(k.Role))
			s.usage.Used(k, v.addr)
			return
		case fault.KindOf(err) == fault.Internal:
			_ = c.Error(err) // for the log; a read may still succeed
			err = fault.New(fault.Unavailable, fault.URL, "authorization", "Keys cannot be checked now; repeat the request.")
		case fault.KindOf(err) == fault.Unavailable:
			_ = c.Error(err)
		}
		v.refusal = err
	}
}

// verify returns the API key of the request if it is valid and may be used from
// the client's address. A call to authsvc takes at most within.
func (s *Server) verify(c *gin.Context, addr netip.Addr, within time.Duration) (authapi.Key, error) {
	if err := s.limits.CheckLockout(c.Request.Context(), addr); err != nil {
		return authapi.Key{}, err
	}
	k, err := s.key(c.Request, within)
	if err == nil && !k.Allows(addr) {
		err = fault.New(fault.Forbidden, fault.Header, "Authorization",
			"This API key may not be used from the address %s.", addr)
	}
	if err == nil {
		return k, nil
	}
	if fault.KindOf(err) == fault.Unauthorized {
		if over := s.limits.CountWrongKey(c.Request.Context(), c.Writer.Header(), addr); over != nil {
			return authapi.Key{}, over
		}
	}
	return authapi.Key{}, err
}

// key returns the API key that a request carries, from the cache or from
// authsvc.
func (s *Server) key(r *http.Request, within time.Duration) (authapi.Key, error) {
	hash, err := apikey.Hash(r.Header)
	if err != nil {
		return authapi.Key{}, err
	}
	if k, known, err := s.keys.Recall(hash); known {
		return k, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	return s.keys.VerifyKey(ctx, hash)
}

// needKey refuses a request without a valid API key. The request must have
// passed identify.
func (s *Server) needKey(c *gin.Context) error {
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

// lockout refuses a request that needs a key if its address has sent too many
// wrong keys. It comes before limit, whose refusal would name a shorter time to
// wait. The request must have passed identify.
func (s *Server) lockout(class routes.Class) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		refusal := visitorOf(c).refusal
		if fault.KindOf(refusal) != fault.TooMany {
			return nil
		}
		s.limits.Count(class, refusal)
		return refusal
	})
}

// limit applies the rate limits to a request, and to the declared size of its
// body if it writes. The request must have passed identify.
func (s *Server) limit(class routes.Class) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		r := ratelimit.Request{Class: class, Client: client(c)}
		if class == routes.Write {
			r.Body = max(0, s.declaredSize(c)) // limitBody counts a body of unknown length
		}
		err := s.limits.Admit(c.Request.Context(), c.Writer.Header(), r)
		s.limits.Count(class, err)
		if err != nil {
			return err
		}
		if i := r.Client.Identity; !i.IsAnonymous() {
			s.usage.Count(i.KeyID, string(class))
		}
		return nil
	})
}

// limitBody applies the rate limits to a body whose length the headers did not
// declare.
func (s *Server) limitBody(c *gin.Context, size int64) error {
	r := ratelimit.Request{Class: ratelimit.Bytes, Client: client(c), Body: size}
	err := s.limits.Admit(c.Request.Context(), c.Writer.Header(), r)
	if err != nil {
		s.limits.Count(routes.Write, err)
	}
	return err
}

// me answers with the identity of the caller and what is left of its rate
// limits. The limits do not count the request.
func (s *Server) me(c *gin.Context) error {
	quotas, err := s.limits.Quotas(c.Request.Context(), c.Writer.Header(), client(c))
	if err != nil {
		return err
	}
	i := caller(c)
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, http.StatusOK, gin.H{"data": gin.H{
		"broker": i.Broker, "key": i.KeyID, "role": i.Role, "accreditations": i.Levels, "limits": quotas,
	}})
}
