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
)

// What is known of who calls, in the context of a request.
const (
	callerKey  = "caller"      // the key, with the identity that it stands for
	refusalKey = "key refused" // why it stands for none
)

func caller(c *gin.Context) identity.Identity {
	k, _ := c.Value(callerKey).(authapi.Key)
	return k.Identity
}

// client is who a request comes from, as the limits count it. The address is
// what edge has found out; it is invalid where there is no network.
func client(c *gin.Context) ratelimit.Client {
	addr, _ := netip.ParseAddr(c.GetHeader(httpserver.ClientHeader))
	return ratelimit.Client{Addr: addr, Identity: caller(c)}
}

// identify takes who calls for whom the key says, if there is one and it is
// good: reading needs none, so nobody is refused here (contract, section 6.4),
// nor kept waiting for more than a part of the request's time. A wrong key
// counts, and after too many from one address none is looked at for a while.
func (s *Server) identify(share time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.GetHeader("Authorization") == "" {
			return
		}
		k, err := s.verify(c, s.config.Timeout/share)
		switch {
		case err == nil:
			c.Set(callerKey, k)
			httpserver.SetTenant(c, string(k.Role))
			s.usage.Used(k, client(c).Addr)
			return
		case fault.KindOf(err) == fault.Internal:
			_ = c.Error(err) // for the log: whether it matters is seen later
			err = fault.New(fault.Unavailable, fault.URL, "authorization", "Keys cannot be checked now; repeat the request.")
		case fault.KindOf(err) == fault.Unavailable:
			_ = c.Error(err)
		}
		c.Set(refusalKey, err)
	}
}

// verify finds out who the caller is, within a time if it must ask.
func (s *Server) verify(c *gin.Context, within time.Duration) (authapi.Key, error) {
	addr := client(c).Addr
	if err := s.limits.MayTry(c.Request.Context(), addr); err != nil {
		return authapi.Key{}, err
	}
	hash, err := apikey.Hash(c.Request.Header)
	if err == nil {
		var k authapi.Key
		if k, err = s.key(c.Request.Context(), hash, within); err == nil && !k.Allows(addr) {
			err = fault.New(fault.Forbidden, fault.Header, "Authorization", "This API key may not be used from the address %s.", addr)
		}
		if err == nil {
			return k, nil
		}
	}
	if fault.KindOf(err) == fault.Unauthorized {
		if over := s.limits.Fail(c.Request.Context(), c.Writer.Header(), addr); over != nil {
			return authapi.Key{}, over
		}
	}
	return authapi.Key{}, err
}

func (s *Server) key(ctx context.Context, hash string, within time.Duration) (authapi.Key, error) {
	if k, known, err := s.keys.Recall(hash); known {
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.keys.VerifyKey(ctx, hash)
}

// needKey refuses a request without a valid API key; it must have passed identify.
func (s *Server) needKey(c *gin.Context) error {
	if _, known := c.Get(callerKey); known {
		return nil
	}
	if refusal, ok := c.Value(refusalKey).(error); ok {
		return refusal
	}
	_, missing := apikey.Hash(c.Request.Header)
	return missing
}

// lockout refuses a request that needs a key while no key of its address is
// looked at: a limit of the address would tell a shorter time to wait. It must
// have passed identify.
func (s *Server) lockout(class ratelimit.Class) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		refusal, _ := c.Value(refusalKey).(error)
		if fault.KindOf(refusal) != fault.TooMany {
			return nil
		}
		s.decided.count(class, refusal)
		return refusal
	})
}

// limit counts a request of a class, and the body that a write says to have; it
// must have passed identify.
func (s *Server) limit(class ratelimit.Class) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		r := ratelimit.Request{Class: class, Client: client(c)}
		if class == ratelimit.Write {
			r.Body = max(0, s.announced(c)) // limitBody counts what is not known yet
		}
		err := s.limits.Admit(c.Request.Context(), c.Writer.Header(), r)
		s.decided.count(class, err)
		if err != nil {
			return err
		}
		if i := caller(c); !i.IsAnonymous() {
			s.usage.Count(i.KeyID, string(class))
		}
		return nil
	})
}

// announced returns how many bytes of a body will be read, by what is known
// before: 0 of one that is refused unread or means nothing, -1 if the headers do
// not tell. It must have passed identify.
func (s *Server) announced(c *gin.Context) int64 {
	r := c.Request
	if r.Method == http.MethodDelete || r.ContentLength > s.config.MaxBody || caller(c).IsAnonymous() || needJSON(c) != nil {
		return 0
	}
	return r.ContentLength
}

// limitBody counts the body of a write that has not said its length.
func (s *Server) limitBody(c *gin.Context, body int64) error {
	err := s.limits.Admit(c.Request.Context(), c.Writer.Header(), ratelimit.Request{Class: ratelimit.Bytes, Client: client(c), Body: body})
	if err != nil {
		s.decided.count(ratelimit.Write, err)
	}
	return err
}

// me tells a caller who it is to us and what is left to it, at no cost.
func (s *Server) me(c *gin.Context) error {
	limits, err := s.limits.Look(c.Request.Context(), c.Writer.Header(), client(c))
	if err != nil {
		return err
	}
	i := caller(c)
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, http.StatusOK, gin.H{"data": gin.H{
		"broker": i.Broker, "key": i.KeyID, "role": i.Role, "accreditations": i.Levels, "limits": limits,
	}})
}
