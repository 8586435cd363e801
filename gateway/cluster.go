package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/version"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// serverCookie tells a client which server it has met (interface document,
// Cluster). A server here is not a process but the registry's data: any gateway
// will do for anything, and synchronisers start over when this changes, which
// they must when the data is another's, or older than what they have seen.
const serverCookie = "SERVER_ID"

// ServerIDOf names the registry of those who share a secret, as long as they have
// no other: a rotation of the secret must not change the name.
func ServerIDOf(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("server id"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// stick gives the cookie to a client that has none. A client with the cookie of
// other data learns of it where it can start over: a write is refused with 412,
// a page after an offset with 404 (contract, decision 24), and both give the new
// cookie, as a listing from the start does. Other readings leave the old cookie
// in place: a client that got the new one there would go on from its old offset.
func (s *Server) stick(c *gin.Context) error {
	cookie, err := c.Request.Cookie(serverCookie)
	if err == nil && cookie.Value == s.config.ServerID {
		return nil
	}
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	if err == nil && reads && !isListing(c) {
		return nil
	}
	http.SetCookie(c.Writer, &http.Cookie{Name: serverCookie, Value: s.config.ServerID, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	switch {
	case err != nil: // the client has no cookie
		return nil
	case !reads:
		return fault.New(fault.Precondition, fault.URL, "precondition", "The server of your cookie is gone; repeat the request with the new one.")
	case c.Query("offset") != "":
		return fault.New(fault.NotFound, fault.Query, "offset",
			"Offset expired/invalid: it belongs to other data, as your cookie SERVER_ID does. "+
				"Start over without an offset, with the new cookie.")
	}
	return nil
}

// spore answers with what the API has, in the form that clients of this family
// ask for at their start (contract, section 3).
func (s *Server) spore(v version.Version) gin.HandlerFunc {
	return httpserver.Handle(func(c *gin.Context) error {
		methods := gin.H{}
		for _, r := range s.routes {
			path, within := strings.CutPrefix(r.Path, "/api/"+v.Name)
			if !within || r.Method == http.MethodHead {
				continue
			}
			status := http.StatusOK
			if r.Method == http.MethodPost {
				status = http.StatusCreated
			}
			methods[methodName(r.Method, path)] = gin.H{"path": path, "method": r.Method, "expected_status": []int{status}}
		}
		return httpserver.JSON(c, http.StatusOK, gin.H{
			"name":            "asset registry",
			"version":         v.As,
			"base_url":        s.baseURL(c.Request) + "/api/" + v.As,
			"expected_status": []int{http.StatusOK},
			"methods":         methods,
		})
	})
}

// methodName names a route: "patch_assets_id_items_part".
func methodName(method, path string) string {
	return strings.ToLower(method) + strings.ReplaceAll(strings.ReplaceAll(path, "/:", "_"), "/", "_")
}
