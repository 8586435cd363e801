package httpapi

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
)

// maxWait is the longest time for which watchKeys waits for a change.
const maxWait = time.Second

func (a *API) verifyKey(c *gin.Context) error {
	var r authapi.VerifyKeyRequest
	if err := read(c, &r); err != nil {
		return err
	}
	k, err := a.keys.Verify(c.Request.Context(), r.KeyHash)
	if err != nil {
		return err
	}
	answer := authapi.VerifyKeyResponse{
		Broker: k.Broker, KeyID: k.KeyID, Role: string(k.Role), Levels: k.Levels,
		Secret: k.Secret, Allow: k.Allow, Limits: k.Limits,
		Raise: k.Raise, RaisedForMS: k.RaisedFor.Milliseconds(),
	}
	if k.GoodFor > 0 {
		answer.GoodForMS = max(1, k.GoodFor.Milliseconds())
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) watchKeys(c *gin.Context) error {
	var r authapi.WatchKeysRequest
	if err := read(c, &r); err != nil {
		return err
	}
	wait := min(time.Duration(r.WaitMS)*time.Millisecond, maxWait)
	answer, err := a.keys.Await(c.Request.Context(), r.Since, wait)
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) exchangeEndings(c *gin.Context) error {
	var r authapi.EndingsRequest
	if err := read(c, &r); err != nil {
		return err
	}
	r.WaitMS = min(r.WaitMS, maxWait.Milliseconds())
	answer, err := a.keys.Endings.Hear(c.Request.Context(), r, a.keys.Await)
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, answer)
}

func (a *API) reportUsage(c *gin.Context) error {
	var r authapi.ReportUsageRequest
	if err := read(c, &r); err != nil {
		return err
	}
	if err := a.keys.Report(c.Request.Context(), r); err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, authapi.ReportUsageResponse{})
}
