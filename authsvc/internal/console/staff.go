package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

const (
	askEvery     = 15 * time.Minute // the provider is asked for a person's role again after this time
	askWithin    = 15 * time.Second // longest time for a question, with its entry in the store
	signInWithin = 10 * time.Minute // longest time from the beginning of a sign-in to its end
	maxSignIns   = 5                // sign-ins that one browser may have begun
	maxNext      = 1000             // bytes of the path of the page after a sign-in
	ticketCookie = "registry-sign-in-"
	startPath    = "/console/sign-in/start"
)

// kept is what the store keeps of the session of a person, sealed.
type kept struct {
	staff.Person
	Asked  time.Time // when the provider has told the role
	Asking time.Time // when a request began to ask again; zero: none asks
}

// ticket is a sign-in that a browser has begun. The browser keeps it in a sealed cookie, so the process keeps nothing.
type ticket struct {
	staff.Attempt
	Next    string // path of the page after the sign-in; "": none
	Session string // id of the session whose role is asked again; "": the sign-in begins a session
	Begun   time.Time
}

// staleError is the error for a session whose role only the browser can ask for again.
type staleError struct{ session string }

func (*staleError) Error() string { return "the role has to be asked again" }

// person identifies the user of a session that has begun by OpenID Connect. It asks for the role again by the refresh
// token, or returns a staleError. Of several requests on several auth services, one asks.
func (c *Console) person(r *http.Request, id string) (admin.Actor, error) {
	for range 3 {
		text, err := c.Ended.KeptSession(r.Context(), id)
		if err != nil {
			return admin.Actor{}, err
		}
		k, ok := open[kept](c.seal, text, keptPurpose+id)
		if !ok || c.Staff == nil || k.Issuer != c.Staff.Issuer() {
			return admin.Actor{}, errNobody
		}
		now := c.Now()
		age, asking := now.Sub(k.Asked), now.Sub(k.Asking).Abs() < askWithin
		switch {
		case age > -clockError && (age < askEvery || asking && age < askEvery+askWithin):
			return actorOf(r, k.Person)
		case asking:
			return admin.Actor{}, fault.New(fault.Unavailable, fault.URL, "provider",
				"%s is being asked for your role. Try again in a few seconds.", c.Staff.Name())
		case k.Refresh == "":
			return admin.Actor{}, &staleError{id}
		}
		// A browser that leaves must not break the question off, because a refresh token may count only once.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askWithin)
		defer cancel()
		k.Asking = now
		if text, err = c.keep(ctx, id, text, k); err != nil || text == "" {
			continue
		}
		return c.askAgain(ctx, r, id, text, k)
	}
	return admin.Actor{}, errors.New("others keep changing the session")
}

// askAgain asks the provider for a role by the refresh token. The argument `text` is what the store keeps.
func (c *Console) askAgain(ctx context.Context, r *http.Request, id, text string, k kept) (admin.Actor, error) {
	who, refused := c.Staff.Ask(ctx, k.Person)
	k.Asking = time.Time{}
	switch fault.KindOf(refused) {
	case fault.Unauthorized:
		k.Refresh, refused = "", &staleError{id}
	case fault.Forbidden:
		return admin.Actor{}, cmp.Or(c.endRefused(r.WithContext(ctx), id), refused)
	case fault.Internal: // there is no fault
		k.Person, k.Asked = who, c.Now()
	}
	if text, err := c.keep(ctx, id, text, k); err != nil || text == "" {
		return admin.Actor{}, cmp.Or(err, error(errNobody))
	}
	if refused != nil {
		return admin.Actor{}, refused
	}
	return actorOf(r, who)
}

// keep replaces what the store keeps of a session. It returns the new text, or "" if the store keeps another text than
// the argument `was`.
func (c *Console) keep(ctx context.Context, id, was string, k kept) (string, error) {
	text, err := c.seal.close(k, keptPurpose+id)
	if err != nil {
		return "", err
	}
	ok, err := c.Ended.KeepSession(ctx, id, was, text, longest+clockError)
	if !ok {
		text = ""
	}
	return text, err
}

func actorOf(r *http.Request, p staff.Person) (admin.Actor, error) {
	from, err := addressOf(r)
	return admin.Actor{Name: strings.TrimSpace(p.ID() + " " + p.Name), Role: p.Role, From: from.String(),
		RequestID: r.Header.Get(httpserver.RequestIDHeader)}, err
}

// startSignIn sends the browser to the provider. If the browser has a session, the provider shows no page.
func (c *Console) startSignIn(w http.ResponseWriter, r *http.Request) error {
	if c.Staff == nil {
		return errNoPage
	}
	t := ticket{Attempt: staff.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}}
	t.Begun = c.Now()
	q := r.URL.Query()
	if t.Next = inside(q.Get("next")); len(t.Next) > maxNext {
		t.Next = root
	}
	if s, ok := c.session(r); ok && s.Staff && q.Has("silent") {
		t.Session, t.Silent = s.ID, true
		if !q.Has("next") {
			t.Next = ""
		}
	}
	from, err := addressOf(r)
	if err != nil {
		return err
	}
	to, err := c.Staff.Begin(r.Context(), clientaddr.Network(from).String(), t.Attempt)
	if err != nil {
		return err
	}
	sealed, err := c.seal.close(t, ticketPurpose)
	if err != nil {
		return err
	}
	var begun []*http.Cookie
	for _, sent := range r.Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(sent.Name, hostPrefix), ticketCookie) {
			begun = append(begun, sent)
		}
	}
	if len(begun) >= maxSignIns {
		for _, old := range begun[:min(len(begun), 4*maxSignIns)] {
			dropTicket(w, r, old.Name)
		}
	}
	given := cookieOf(r, ticketCookie+t.State[:8], http.SameSiteLaxMode)
	given.Value, given.MaxAge = sealed, int(signInWithin.Seconds())
	http.SetCookie(w, given)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func dropTicket(w http.ResponseWriter, r *http.Request, name string) {
	gone := cookieOf(r, "", http.SameSiteLaxMode)
	gone.Name, gone.MaxAge = name, -1
	http.SetCookie(w, gone)
}

// takeTicket returns the ticket of the sign-in whose state the provider has sent back, and removes its cookie.
func (c *Console) takeTicket(w http.ResponseWriter, r *http.Request) (t ticket, ok bool) {
	state := r.URL.Query().Get("state")
	if len(state) != len(rand.Text()) || strings.Trim(state, idAlphabet) != "" {
		return t, false
	}
	name := cookieOf(r, ticketCookie+state[:8], http.SameSiteLaxMode).Name
	sent, err := r.Cookie(name)
	if err != nil {
		return t, false
	}
	dropTicket(w, r, name)
	t, ok = open[ticket](c.seal, sent.Value, ticketPurpose)
	age := c.Now().Sub(t.Begun)
	return t, ok && subtle.ConstantTimeCompare([]byte(t.State), []byte(state)) == 1 &&
		age < signInWithin && age > -clockError
}

// finishSignIn begins a session for a person whom the provider sends back, or notes the role in the session.
func (c *Console) finishSignIn(w http.ResponseWriter, r *http.Request) error {
	if c.Staff == nil {
		return errNoPage
	}
	t, ok := c.takeTicket(w, r)
	if !ok {
		return c.showSignInPage(w, http.StatusBadRequest, "", signInPage{Next: root,
			Provider: "This sign-in did not begin in this browser, or took over 10 minutes. Begin again."})
	}
	from, err := addressOf(r)
	if err != nil {
		return err
	}
	who, err := c.Staff.Finish(r.Context(), clientaddr.Network(from).String(), t.Attempt, r.URL.Query())
	if err == nil && t.Session != "" {
		err = c.noteRole(r.Context(), t.Session, who)
	}
	switch kind := fault.KindOf(err); {
	case kind == fault.Unauthorized || kind == fault.Forbidden:
		if err := c.endRefused(r, t.Session); err != nil {
			return err
		}
		f, _ := errors.AsType[*fault.Error](err)
		status := map[fault.Kind]int{fault.Unauthorized: 401, fault.Forbidden: 403}[kind]
		return c.showSignInPage(w, status, "",
			signInPage{Next: cmp.Or(t.Next, root), Provider: f.Details[0].Description})
	case err != nil:
		return err
	}
	if t.Session == "" {
		if err := c.beginSession(w, r, who); err != nil {
			return err
		}
	}
	return c.goOn(w, who.Name, t.Next)
}

// endRefused counts a refused sign-in. It ends the session whose role was asked again, and notes its person; "": none.
func (c *Console) endRefused(r *http.Request, id string) error {
	from, err := addressOf(r)
	if err != nil {
		return err
	}
	c.Users.RefusedSignIn(from)
	if id == "" {
		return nil
	}
	by, err := c.leaver(r, session{ID: id, Staff: true})
	if err != nil {
		return err
	}
	return c.end(r, by, id)
}

// leaver returns the user of a session that ends. It does not ask for the role of a person.
func (c *Console) leaver(r *http.Request, s session) (by admin.Actor, err error) {
	if s.Staff {
		text, err := c.Ended.KeptSession(r.Context(), s.ID)
		if err != nil {
			return by, err
		}
		if k, ok := open[kept](c.seal, text, keptPurpose+s.ID); ok {
			return actorOf(r, k.Person)
		}
	}
	if by, err = c.holder(r, s); err != nil { // the key has ended meanwhile
		by.Name = "nobody"
	}
	return by, nil
}

// noteRole notes in a session that the provider has told the role again. A session never changes its person.
func (c *Console) noteRole(ctx context.Context, id string, who staff.Person) error {
	text, err := c.Ended.KeptSession(ctx, id)
	if err != nil {
		return err
	}
	k, ok := open[kept](c.seal, text, keptPurpose+id)
	if !ok || k.Issuer != who.Issuer || k.Subject != who.Subject {
		return fault.New(fault.Unauthorized, fault.URL, "provider",
			"Your session has ended, or %s has named another person. Sign in again.", c.Staff.Name())
	}
	text, err = c.keep(ctx, id, text, kept{Person: who, Asked: c.Now()})
	if err == nil && text == "" { // another tab has confirmed the role, or the session has ended
		return nil
	}
	return err
}

func (c *Console) beginSession(w http.ResponseWriter, r *http.Request, who staff.Person) error {
	by, err := actorOf(r, who)
	if err != nil {
		return err
	}
	now, id := c.Now(), rand.Text()
	err = c.Admin.Witness(r.Context(), by, audit.BeginSession, audit.LogSubject,
		map[string]string{"session": id, "issuer": who.Issuer, "role": string(who.Role)})
	if err != nil {
		return err
	}
	if text, err := c.keep(r.Context(), id, "", kept{Person: who, Asked: now}); err != nil || text == "" {
		return cmp.Or(err, errors.New("the store has the new session already"))
	}
	return c.remember(w, r, session{ID: id, Staff: true, Begun: now, Used: now})
}

// onward is the body of a page that leads to another page.
type onward struct {
	Name string // of the person; "": not known
	Next string // path of the page; "": the page leads nowhere
}

// goOn shows a page that leads to another page by itself. A redirect would not do. A browser sends the cookie of the
// session (SameSite=Strict) only if a page of the console leads to the next one. And a form must not lead to the
// provider (Content-Security-Policy).
func (c *Console) goOn(w http.ResponseWriter, name, next string) error {
	if next != "" {
		w.Header().Set("Refresh", "0; url="+next)
	}
	return c.show(w, http.StatusOK, "signed-in", view{Title: "Signed in", Body: onward{name, next}})
}

// held is the body of a page that holds a form until the role was asked again.
type held struct {
	Provider, To, Confirm string
	Sent                  url.Values
}

// askInBrowser lets the browser ask for the role again. A form that was sent stays on the page. Only a page of the
// console can have sent it, because the cookie came along.
func (c *Console) askInBrowser(w http.ResponseWriter, r *http.Request) error {
	ask := url.Values{"silent": {""}}
	if r.Method == http.MethodPost {
		if err := parseForm(w, r); err != nil {
			return err
		}
		return c.show(w, http.StatusConflict, "held", view{Title: "Confirm that it is you", Body: held{
			c.Staff.Name(), r.URL.RequestURI(), startPath + "?" + ask.Encode(), r.PostForm}})
	}
	ask.Set("next", r.URL.RequestURI())
	return c.goOn(w, "", startPath+"?"+ask.Encode())
}
