// Command provider is the example of github.com/zitadel/oidc, a provider of OpenID Connect that others wrote, for
// the tests of sign-ins. It adds what the example lacks: groups in ID tokens, other keys, sign-ins without a page.
//
// It prints its address when it listens. A test sends POST /test?groups=GROUPS&rotate=1&page=1 to change it.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves a client with the address to which people are sent back.
func run(redirect string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.WebClient("console", "secret", redirect))
	s := &store{Storage: storage.NewStorage(storage.NewUserStore(issuer)), known: map[string]bool{}}
	s.groups = []string{"registry"}
	s.rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /test", s.change)
	mux.Handle("/", exampleop.SetupServer(issuer, s, slog.New(slog.DiscardHandler), false))
	fmt.Println(issuer)
	return http.Serve(listener, mux)
}

// store is the example's store, with more.
type store struct {
	*storage.Storage
	mu     sync.Mutex
	groups []string
	keys   []key
	page   bool            // the next sign-in shows a page
	known  map[string]bool // sign-ins without a page
}

type key struct {
	name    string
	private *rsa.PrivateKey
}

// current is a key in its role as the key that signs.
type current struct{ key }

func (k key) ID() string                                      { return k.name }
func (k key) Algorithm() jose.SignatureAlgorithm              { return jose.RS256 }
func (k key) Use() string                                     { return "sig" }
func (k key) Key() any                                        { return &k.private.PublicKey }
func (k current) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k current) Key() any                                    { return k.private }

func (s *store) rotate() {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	s.keys = []key{{rand.Text(), private}}
}

func (s *store) change(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := r.URL.Query(); q.Has("groups") {
		s.groups = strings.Split(q.Get("groups"), ",")
	}
	if r.URL.Query().Has("rotate") {
		s.rotate()
	}
	s.page = r.URL.Query().Has("page")
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return current{s.keys[0]}, nil
}

func (s *store) KeySet(context.Context) ([]op.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []op.Key{s.keys[0]}, nil
}

// SetUserinfoFromRequest adds the groups.
func (s *store) SetUserinfoFromRequest(
	ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string,
) error {
	s.mu.Lock()
	info.AppendClaims("groups", s.groups)
	s.mu.Unlock()
	return s.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

// CreateAuthRequest signs the example's first user in without a page, unless the test wants one.
func (s *store) CreateAuthRequest(ctx context.Context, r *oidc.AuthRequest, user string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	silent := len(r.Prompt) > 0 && !s.page
	if silent {
		r.Prompt = nil
	}
	made, err := s.Storage.CreateAuthRequest(ctx, r, user)
	if err == nil && silent {
		s.known[made.GetID()] = true
		err = s.Storage.CheckUsernamePassword("test-user2", "verysecure", made.GetID())
	}
	return made, err
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	return client{c, s}, err
}

// client is the example's client, whose ID tokens have the claims of people.
type client struct {
	op.Client
	store *store
}

func (client) IDTokenUserinfoClaimsAssertion() bool { return true }

func (c client) LoginURL(id string) string {
	if c.store.known[id] {
		return "/auth/callback?id=" + id
	}
	return c.Client.LoginURL(id)
}
