package gateway

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Mirror configures the gateway of a mirror (docs/mirrors.md, "Serve a copy"). The gateway answers reads without a
// key, and refuses every other request with 421. Origin and Age are required. Config.Assets and Config.ServerID are
// required too; the ServerID must be equal to the origin's.
type Mirror struct {
	Origin string               // address of the registry that takes all other requests
	Age    func() time.Duration // returns how much older the data are than the data of the origin
	Fault  func() string        // says why the data cannot be updated; "": they can be; nil: they always can be
}

func (m *Mirror) validate(c Config) error {
	if m.Age == nil || c.Assets == nil || c.ServerID == "" {
		return errors.New("a mirror needs an age, a server id and an asset service in its process")
	}
	if c.Auth != nil || len(c.AuthURLs) > 0 {
		return errors.New("a mirror has no auth service")
	}
	if strings.ContainsAny(m.Origin, "<>\"") { // the header Link has the origin between < and >
		return fmt.Errorf("the origin, %q, must have no brackets and quotes", m.Origin)
	}
	return nil
}

// aged adds the header Age (RFC 9111, 5.1) to each answer.
func (m *Mirror) aged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Age", strconv.FormatInt(int64(max(0, m.Age())/time.Second), 10))
		next.ServeHTTP(w, r)
	})
}

// facts returns what /readyz shows about a mirror.
func (m *Mirror) facts() map[string]any {
	if m == nil {
		return nil
	}
	facts := map[string]any{"origin": m.Origin, "behindSeconds": math.Round(m.Age().Seconds()*10) / 10}
	if m.Fault != nil && m.Fault() != "" {
		facts["fault"] = m.Fault()
	}
	return facts
}

// origin returns m.Origin. If the gateway does not serve a mirror, m is nil and the result is "".
func (m *Mirror) origin() string {
	if m == nil {
		return ""
	}
	return m.Origin
}
