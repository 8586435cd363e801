package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
)

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
