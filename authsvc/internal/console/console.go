// Package console serves the admin API as web pages, on the same listener. The pages work without JavaScript.
// The console keeps no state in the process, so any auth service can answer any request: a sealed cookie holds
// the session, the store has the sessions that were ended, and the audit log has the forms that were sent.
package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// Authenticator identifies a user by the hash of a key and the user's address. admin.Authenticator describes
// the faults that it returns.
type Authenticator interface {
	// Operator identifies an operator by the hash of a key.
	Operator(ctx context.Context, hash string, from netip.Addr) (admin.Actor, error)
	// SignedIn identifies the user of a session.
	SignedIn(ctx context.Context, hash string, from netip.Addr) (admin.Actor, error)
	// RefusedSignIn counts a sign-in that the provider or a missing role has refused, for the audit log.
	RefusedSignIn(from netip.Addr)
}

// Sessions stores which sessions were ended before they expired, and a text for each session without a key.
type Sessions interface {
	// EndSession durably ends a session. The store may forget the session after the given time.
	EndSession(ctx context.Context, id string, forget time.Duration) error
	// SessionEnded reports whether a session was ended.
	SessionEnded(ctx context.Context, id string) (bool, error)
	// KeepSession durably keeps a text of a session, if the argument `was` is the text that the store keeps now; "": it
	// keeps none, and the session was not ended. Otherwise it does nothing and returns false. The store may forget the
	// text after the given time.
	KeepSession(ctx context.Context, id, was, text string, forget time.Duration) (bool, error)
	// KeptSession returns the text that the store keeps of a session, or "". It keeps none of a session that was ended.
	KeptSession(ctx context.Context, id string) (string, error)
}

//go:embed templates assets
var files embed.FS

// root is the path prefix of all pages.
const root = "/console/"

// Options has what a console needs.
type Options struct {
	Secrets keyring.Ring // the first one seals sessions; any of them opens a session
	Admin   *admin.Service
	Checker *audit.Checker
	Users   Authenticator
	Ended   Sessions
	Staff   *staff.Provider // nil: nobody signs in by OpenID Connect
	Assets  Assets          // nil: no pages about the public log, assets and webhooks
	BaseURL string          // address of the public API, without a path; "": the console does not know it

	Warnings func(context.Context) []string          // of the store of keys; nil: there are none
	Problems func(context.Context) ([]string, error) // of a registry of one process; nil: the console does not know them

	Log *slog.Logger
	Now func() time.Time
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	Options
	seal     *sealer
	views    map[string]views // by language
	exports  chan struct{}    // holds one element for each export that runs
	failures *failurelog.Log  // pages that failed
}

// New returns a console. It seals sessions with a key derived from the registry's secrets.
func New(o Options) (*Console, error) {
	seal, err := newSealer(o.Secrets)
	if err != nil {
		return nil, err
	}
	pages := map[string]views{english: parseViews(english, o.Now), ukrainian: parseViews(ukrainian, o.Now)}
	failures := failurelog.New(o.Log, "a page of the console failed")
	return &Console{o, seal, pages, make(chan struct{}, maxExports), failures}, nil
}

// Route adds the console to engine.
func (c *Console) Route(engine *gin.Engine) {
	handler := gin.WrapH(c.Handler())
	engine.GET("/console", handler)
	engine.Any(root+"*path", handler)
}

// Handler returns the handler of all paths under /console.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /console", c.reading(c.showStart))
	mux.Handle("GET /console/{$}", c.reading(c.showStart))
	mux.Handle("GET /console/find", c.reading(c.find))
	mux.Handle("GET /console/sessions", c.reading(c.listSessions))
	mux.Handle("POST /console/sessions/{id}/end", c.changing(c.endSession))
	mux.Handle("GET /console/assets/{name}", c.page(c.asset))
	mux.Handle("GET /console/language/{language}", c.page(c.chooseLanguage))
	mux.Handle("GET /console/sign-in", c.page(c.showSignIn))
	mux.Handle("POST /console/sign-in", c.page(c.signIn))
	mux.Handle("GET "+startPath, c.page(c.startSignIn))
	mux.Handle("GET "+staff.BackPath, c.page(c.finishSignIn))
	mux.Handle("POST /console/sign-out", c.page(c.signOut))

	mux.Handle("GET /console/keys", c.reading(c.listKeys))
	mux.Handle("GET /console/keys/{id}", c.reading(c.showKey))
	mux.Handle("GET /console/new-key", c.opening(c.showNewKey))
	mux.Handle("POST /console/new-key", c.changing(c.createKey))
	mux.Handle("GET /console/keys/{id}/edit", c.opening(c.showEditKey))
	mux.Handle("POST /console/keys/{id}/edit", c.changing(c.editKey))
	mux.Handle("GET /console/keys/{id}/rotate", c.opening(c.showRotateKey))
	mux.Handle("POST /console/keys/{id}/rotate", c.changing(c.rotateKey))
	mux.Handle("GET /console/keys/{id}/revoke", c.opening(c.showRevokeKey))
	mux.Handle("POST /console/keys/{id}/revoke", c.changing(c.revokeKey))

	// The name of a broker can be any text, such as ".", so it is a parameter and not part of the path.
	mux.Handle("GET /console/brokers", c.reading(c.listBrokers))
	mux.Handle("GET /console/broker", c.reading(c.showBroker))
	mux.Handle("GET /console/new-broker", c.opening(c.showNewBroker))
	mux.Handle("POST /console/new-broker", c.changing(c.createBroker))
	mux.Handle("GET /console/edit-broker", c.opening(c.showEditBroker))
	mux.Handle("POST /console/edit-broker", c.changing(c.editBroker))
	mux.Handle("GET /console/remove-broker", c.opening(c.showRemoveBroker))
	mux.Handle("POST /console/remove-broker", c.changing(c.removeBroker))

	mux.Handle("GET /console/audit", c.reading(c.listAudit))
	mux.Handle("GET /console/audit/check", c.reading(c.checkAudit))
	mux.Handle("GET "+ExportPath+"{format}", c.reading(c.exportAudit))
	if c.Assets != nil {
		mux.Handle("GET /console/log", c.reading(c.showLog))
		mux.Handle("GET /console/asset", c.reading(c.showHistory))
		mux.Handle("GET /console/recover-asset", c.opening(c.recoverPage))
		mux.Handle("POST /console/recover-asset", c.changing(c.recoverAsset))
		mux.Handle("GET /console/webhooks", c.reading(c.listWebhooks))
		mux.Handle("GET /console/webhooks/{id}", c.reading(c.showWebhook))
		mux.Handle("POST /console/webhooks/{id}/stop", c.changing(c.changeWebhook(assetclient.StopWebhook)))
		mux.Handle("POST /console/webhooks/{id}/resume", c.changing(c.changeWebhook(assetclient.ResumeWebhook)))
		mux.Handle("POST /console/webhooks/{id}/replay", c.changing(c.changeWebhook(assetclient.ReplayWebhook, "offset")))
		mux.Handle("GET /console/webhooks/{id}/remove", c.opening(c.showRemoveWebhook))
		mux.Handle("POST /console/webhooks/{id}/remove", c.changing(c.changeWebhook(assetclient.RemoveWebhook)))
	}
	mux.Handle(root, c.page(c.noPage))

	// Browsers send Sec-Fetch-Site or Origin, which show that a page of another origin
	// sent a request. Browsers without both do not send the cookie from other sites
	// (SameSite). So no other origin can make a change, and forms need no CSRF token.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(c.page(func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.Forbidden, fault.Header, "Origin",
			"Another site has sent this request in your name. Nothing was done.")
	}))
	return headers(guard.Handler(mux))
}

var errNoPage = fault.New(fault.NotFound, fault.URL, "path", "There is no such page.")

// noPage answers a request for a page that does not exist. For a user who is signed in, the answer has the
// navigation.
func (c *Console) noPage(w http.ResponseWriter, r *http.Request) error {
	by, err := c.user(w, r)
	if err != nil {
		by = admin.Actor{}
	}
	c.fail(w, r, by, errNoPage)
	return nil
}

// contentSecurityPolicy lets pages load scripts, styles and images only from the console, and forbids other
// pages to show them in frames.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers sets the security headers of all pages. No cache may keep a page.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Language", languageOf(r)) // the method `show` reads it
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "same-origin") // no-referrer makes forms send "Origin: null", which may be refused
		next.ServeHTTP(w, r)
	})
}

// page returns a handler that shows the error of another handler as a page.
func (c *Console) page(handler func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			c.fail(w, r, admin.Actor{}, err)
		}
	})
}

type handler func(w http.ResponseWriter, r *http.Request, by admin.Actor) error

// reading serves a page to a user who is signed in. It redirects other users to the page where they can sign
// in.
func (c *Console) reading(next handler) http.Handler {
	return c.page(func(w http.ResponseWriter, r *http.Request) error {
		by, err := c.user(w, r)
		_, stale := errors.AsType[*staleError](err)
		switch {
		case stale:
			return c.askInBrowser(w, r)
		case fault.KindOf(err) == fault.Unauthorized:
			c.forget(w, r)
			http.Redirect(w, r, signInPath(r), http.StatusSeeOther)
			return nil
		case err != nil:
			return err
		}
		if err := next(w, r, by); err != nil {
			c.fail(w, r, by, err)
		}
		return nil
	})
}

const maxForm = 64 << 10 // maximum number of bytes of a form

// changing serves a page to an operator. It refuses other users. A form that is sent a second time changes
// nothing.
func (c *Console) changing(next handler) http.Handler {
	return c.reading(func(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
		if by.Role != apikey.Operator {
			return fault.New(fault.Forbidden, fault.Header, "Authorization",
				"You may read here and change nothing.")
		}
		if err := parseForm(w, r); err != nil {
			return err
		}
		if r.Method != http.MethodPost {
			return next(w, r, by)
		}
		by, err := once(by, r)
		if err != nil {
			return err
		}
		by.Warnings = new([]string)
		err = next(w, r, by)
		if done, ok := errors.AsType[*admin.DoneError](err); ok {
			notice := again
			if _, ok := audit.WebhookOf(done.Entry.Subject); ok {
				notice = webhookAgain
			}
			return redirect(w, r, subjectPath(done.Entry.Subject), notice)
		}
		return err
	})
}

// opening serves a page with a new form to an operator.
func (c *Console) opening(next func(http.ResponseWriter, *http.Request, admin.Actor, form) error) http.Handler {
	return c.changing(func(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
		f, err := c.newForm(r.Context())
		if err != nil {
			return err
		}
		return next(w, r, by, f)
	})
}

func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.New(fault.TooLarge, fault.Body, "data", "The form is too long: at most %d KiB.", maxForm>>10)
		}
		return fault.New(fault.Invalid, fault.Body, "data", "The browser sent a malformed form. Open it again.")
	}
	return nil
}

// problem is the body of a page that shows an error.
type problem struct{ Texts []string }

// titles has the titles of pages that show faults.
var titles = map[fault.Kind]string{
	fault.Invalid:     "This cannot be done",
	fault.Forbidden:   "You may not do this",
	fault.NotFound:    "Not found",
	fault.Conflict:    "Something has changed meanwhile",
	fault.TooLarge:    "Too much",
	fault.TooMany:     "Too many attempts",
	fault.Unavailable: "Not available just now",
}

// fail shows an error as a page. If the error is a fault, the page has its text. The text of any other error goes only
// to the log.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, by admin.Actor, err error) {
	switch ended := r.Context().Err(); {
	case errors.Is(ended, context.Canceled): // the client closed the connection
		w.WriteHeader(httpserver.StatusClientGone)
		return
	case errors.Is(ended, context.DeadlineExceeded) && fault.KindOf(err) == fault.Internal:
		err = fault.New(fault.Unavailable, fault.URL, "timeout", "The registry could not answer in time.")
	}
	title, p := "Something went wrong", problem{[]string{"The registry could not answer. Try again."}}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		c.failures.Failed(fmt.Errorf("%s: %w", r.URL.Path, err))
	} else {
		title, p = titles[f.Kind], problem{}
		for _, d := range f.Details {
			p.Texts = append(p.Texts, d.Description)
		}
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
		}
	}
	if err := c.show(w, faulthttp.Status(err), "problem", view{Title: title, By: by, Body: p}); err != nil {
		c.failures.Failed(fmt.Errorf("%s: %w", r.URL.Path, err))
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// asset serves a static file. The ETag lets browsers keep it until it changes.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) error {
	name := "assets/" + r.PathValue("name")
	text, err := files.ReadFile(name)
	if err != nil {
		return errNoPage
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", fmt.Sprintf("%q", digest(text)))
	http.ServeFileFS(w, r, files, name)
	return nil
}
