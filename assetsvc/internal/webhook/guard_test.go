package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"asset-registry/shared/testing/expect"
)

// Promises: hook-url
func TestCheckURL(t *testing.T) {
	private := Policy{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	sandbox := Policy{OwnPorts: []uint16{8080, 80}}
	for _, c := range []struct {
		url  string
		p    Policy
		want string // part of the error; "": no error
	}{
		{"https://example.org/hooks?a=b", Policy{}, ""},
		{"https://example.org:8443", Policy{}, ""},
		{"https://93.184.216.34/", Policy{}, ""},
		{"https://[2606:2800:220:1::1]/", Policy{}, ""},
		{"http://example.org/", Policy{}, "https"},
		{"http://example.org/", Policy{HTTP: true}, ""},
		{"ftp://example.org/", Policy{HTTP: true}, "https"},
		{"example.org", Policy{}, "https"},
		{"", Policy{}, "https"},
		{"https://user:secret@example.org/", Policy{}, "no user name"},
		{"https://user@example.org/", Policy{}, "no user name"},
		{"https://example.org/#part", Policy{}, `"#"`},
		{"https:///path", Policy{}, "no host"},
		{"https:example.org", Policy{}, "no host"},
		{"https://exa mple.org/", Policy{}, "not an address"},
		{"https://example.org/" + strings.Repeat("x", maxURL-20), Policy{}, ""},
		{"https://example.org/" + strings.Repeat("x", maxURL-19), Policy{}, "2001 characters"},
		{"https://127.0.0.1/", Policy{}, "not public"},
		{"https://10.1.2.3/", Policy{}, "not public"},
		{"https://10.1.2.3/", private, ""},
		{"https://[::ffff:10.1.2.3]/", private, ""},
		{"https://192.168.0.1/", private, "not public"},
		{"https://[fd00::1]/", private, ""},
		{"https://[fe80::1%25eth0]/", Policy{}, "not public; the operator permits networks with --webhook-networks"},
		{"http://example.org/", Policy{}, "--webhook-http"},
		{"http://127.0.0.1:9000/hook", sandbox, ""},
		{"https://127.0.0.1:9000/hook", sandbox, ""},
		{"http://127.0.0.1", sandbox, "listens at this port"},
		{"http://127.0.0.1:8080/api/2.5/assets", sandbox, "listens at this port"},
		{"https://[::ffff:127.0.0.1]:8080/", sandbox, "listens at this port"},
		{"http://[::ffff:127.0.0.1]:9000/", sandbox, "https"},
		{"http://127.0.0.2:9000/", sandbox, "https"},
		{"https://127.0.0.2:9000/", sandbox, "not public"},
		{"http://localhost:9000/", sandbox, "https"},
		{"http://[::1]:9000/", sandbox, "https"},
		{"http://10.0.0.1:9000/", sandbox, "https"},
		{"http://127.0.0.1:70000/", sandbox, "port"},
		{"http://127.1:9000/", sandbox, "https"},
		{"http://2130706433:9000/", sandbox, "https"},
	} {
		t.Run(c.url[:min(40, len(c.url))], func(t *testing.T) {
			err := CheckURL(c.url, c.p)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want no password in it", err)
			}
		})
	}
}

// notPublic lists addresses to which nothing may be sent.
var notPublic = []string{
	"127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
	"100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255",
	"fd00::1", "fd00:ec2::254", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
	"64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "2001:db8::1", "::127.0.0.1",
}

func TestNothingIsSentToAddressesThatAreNotPublic(t *testing.T) {
	for _, ip := range notPublic {
		literal := ip
		if strings.Contains(ip, ":") {
			literal = "[" + ip + "]"
		}
		if err := CheckURL("https://"+literal+"/", Policy{}); err == nil {
			t.Errorf("%s: CheckURL accepts it", ip)
		}
		names := &resolver{answers: func(string) netip.Addr { return netip.MustParseAddr(ip) }}
		for _, host := range []string{literal, "rebound.example"} {
			a := sendTo(t, Policy{}, names.start(t), "https://"+net.JoinHostPort(strings.Trim(host, "[]"), "9"))
			if !a.guard && a.fault != errNotPublic.Error() {
				t.Errorf("%s as %s: got %+v, want that it is refused", ip, host, a)
			}
		}
	}
}

// TestASandboxSendsToItsMachine sends to a server on this machine. A port of the registry itself must be refused, by its
// number and by a name that resolves to this machine.
func TestASandboxSendsToItsMachine(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	at := expect.Get(netip.ParseAddrPort(s.Listener.Addr().String()))(t)
	names := (&resolver{func(string) netip.Addr { return at.Addr() }}).start(t)
	named := fmt.Sprintf("http://hook.example:%d", at.Port())
	for _, address := range []string{s.URL, named} {
		if got := sendTo(t, Policy{OwnPorts: []uint16{1}}, names, address); got.status != http.StatusTemporaryRedirect {
			t.Errorf("%s: got %+v, want the redirect itself", address, got)
		}
		if got := sendTo(t, Policy{OwnPorts: []uint16{1, at.Port()}}, names, address); got.status != 0 {
			t.Errorf("%s: got %+v from a port of the registry, want none", address, got)
		}
		if got := sendTo(t, Policy{HTTP: true}, names, address); got.status != 0 {
			t.Errorf("%s: got %+v without a sandbox, want none", address, got)
		}
	}
}

// sendTo sends a message to an address.
func sendTo(t *testing.T, p Policy, r *net.Resolver, address string) answer {
	t.Helper()
	transport := newTransport(p, r)
	defer transport.CloseIdleConnections()
	return post(t.Context(), transport, address, nil, message{id: "msg", body: []byte(`{}`)})
}

// resolver is a DNS server for tests. It answers each query for an IPv4 or IPv6 address.
type resolver struct {
	answers func(name string) netip.Addr
}

// start starts the server, and returns a net.Resolver that uses it.
func (r *resolver) start(t *testing.T) *net.Resolver {
	conn := expect.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, err := r.reply(buffer[:n]); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}
	return &net.Resolver{PreferGo: true, Dial: dial}
}

func (r *resolver) reply(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, fmt.Errorf("unpack question: %w", err)
	}
	q := m.Questions[0]
	ip := r.answers(q.Name.String())
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case q.Type == dnsmessage.TypeA && ip.Unmap().Is4():
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: ip.Unmap().As4()}}}
	case q.Type == dnsmessage.TypeAAAA && ip.Is6():
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}}
	}
	return m.Pack()
}

// TestANameIsCheckedWhenItIsUsed has a name that first resolves to an allowed address, and later to a forbidden
// one. The later message must be refused.
func TestANameIsCheckedWhenItIsUsed(t *testing.T) {
	got := atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer s.Close()
	u := expect.Get(url.Parse(s.URL))(t)
	address := netip.MustParseAddr("127.0.0.1")
	var rebound atomic.Bool
	names := &resolver{answers: func(string) netip.Addr {
		if rebound.Load() {
			return netip.MustParseAddr("127.0.0.2")
		}
		return address
	}}
	p := Policy{Networks: []netip.Prefix{netip.PrefixFrom(address, 32)}, HTTP: true}
	r := names.start(t)
	target := "http://" + net.JoinHostPort("name.example", u.Port())
	if a := sendTo(t, p, r, target); a.fault != "" || got.Load() != 1 {
		t.Errorf("before: got %q and %d messages, want none and 1", a.fault, got.Load())
	}
	rebound.Store(true)
	if a := sendTo(t, p, r, target); !a.guard || got.Load() != 1 {
		t.Errorf("after: got %+v and %d messages, want that it is refused, and 1", a, got.Load())
	}
}

// local is a policy that allows the servers of the tests.
var local = Policy{
	Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, HTTP: true,
}

// answering sends a message to a server with the handler h. It returns the answer and the time that it took.
func answering(t *testing.T, h http.HandlerFunc) (answer, time.Duration) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	defer s.CloseClientConnections()
	begun := time.Now()
	a := sendTo(t, local, nil, s.URL)
	return a, time.Since(begun)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := atomic.Int64{}
	for _, status := range []int{301, 302, 303, 307, 308} {
		a, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Redirect(w, r, "/other", status)
		})
		expect.Equal(t, a.fault, fmt.Sprintf("the receiver answered %d; redirects are not followed", status), "")
	}
	expect.Equal(t, asked.Load(), 5, "requests")
}

func TestAMessageSaysWhatItIs(t *testing.T) {
	var got http.Header
	answering(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	kind, sender := got.Get("Content-Type"), got.Get("User-Agent")
	if kind != "application/json" || sender != userAgent || got["Idempotency-Key"] != nil {
		t.Errorf("got the headers %v, want the type, the sender and no Idempotency-Key", got)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	a, _ := answering(t, endless)
	if a.fault != "" || len(a.body) != maxAnswer {
		t.Errorf("an endless answer: got %q and %d bytes, want none and %d", a.fault, len(a.body), maxAnswer)
	}
	a, _ = answering(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
		}
	})
	expect.Equal(t, a.fault, "the connection to the receiver failed", "endless headers")
	a, _ = answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "77")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "secret text of the receiver")
	})
	if a.after != 77*time.Second || a.fault != "the receiver answered 503" {
		t.Errorf("got %v and %q, want 77s and the status alone", a.after, a.fault)
	}
}

// TestEachStatusOf2xxAcknowledges lets a receiver answer with statuses of each class. Only a status from 200 to 299
// must acknowledge the message.
// Promises: hook-acknowledged
func TestEachStatusOf2xxAcknowledges(t *testing.T) {
	for _, status := range []int{200, 201, 202, 204, 226, 299, 302, 304, 400, 404, 410, 429, 500, 503} {
		a, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if acknowledged := a.fault == ""; a.status != status || acknowledged != (status < 300) {
			t.Errorf("status %d: got %d and the fault %q, want one for others than 2xx only", status, a.status, a.fault)
		}
	}
}

func TestAnAnswerWithoutAnEndAcknowledges(t *testing.T) {
	a, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "the text of a challenge")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	if a.status != http.StatusAccepted || a.fault != "" || len(a.body) > 0 {
		t.Errorf("got status %d, the fault %q and the body %q; want 202 and no part of a body", a.status, a.fault, a.body)
	}
}

// TestAMessageOnAConnectionThatEndsIsRepeated has a receiver that answers the first request on a connection, and
// ends the connection at the second one. The transport must repeat that request on a new connection.
func TestAMessageOnAConnectionThatEndsIsRepeated(t *testing.T) {
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var ended, answered atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r, first := bufio.NewReader(c), true; ; first = false {
					request, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					if !first {
						ended.Add(1)
						return
					}
					answered.Add(1)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	via := newTransport(local, nil)
	defer via.CloseIdleConnections()
	for range 2 {
		if a := post(t.Context(), via, "http://"+l.Addr().String(), nil, message{body: []byte("{}")}); a.fault != "" {
			t.Errorf("got %q, want the message acknowledged", a.fault)
		}
	}
	expect.Try(t, l.Close())
	if ended.Load() != 1 || answered.Load() != 2 {
		t.Errorf("got %d connections ended and %d answers, want 1 and 2", ended.Load(), answered.Load())
	}
}

func TestAReceiverThatSaysNothing(t *testing.T) {
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a := post(ctx, newTransport(local, nil), "http://"+l.Addr().String(), nil, message{})
	if a.fault != "the receiver did not answer in time" {
		t.Errorf("got %q, want that it did not answer in time", a.fault)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	protocols := atomic.Pointer[string]{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		protocols.Store(&r.Proto)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // do not log failed handshakes
	s.StartTLS()
	defer s.Close()
	u := expect.Get(url.Parse(s.URL))(t)
	const invalid = "the certificate of the receiver is not valid for the address"
	if a := sendTo(t, local, nil, s.URL); a.fault != invalid {
		t.Errorf("an unknown authority: got %q, want %q", a.fault, invalid)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, c := range []struct{ host, want string }{{"example.com", ""}, {"wrong.example", invalid}} {
		names := &resolver{answers: func(string) netip.Addr { return netip.MustParseAddr("127.0.0.1") }}
		transport := newTransport(local, names.start(t))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		a := post(t.Context(), transport, "https://"+net.JoinHostPort(c.host, u.Port()), nil, message{})
		expect.Equal(t, a.fault, c.want, "%s", c.host)
		transport.CloseIdleConnections()
	}
	if p := protocols.Load(); p == nil || *p != "HTTP/2.0" {
		t.Errorf("got the protocol %v, want HTTP/2.0", p)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	a := sendTo(t, local, nil, strings.Replace(plain.URL, "http:", "https:", 1))
	if a.fault != "the receiver does not speak TLS" {
		t.Errorf("without TLS: got %q, want that it does not speak TLS", a.fault)
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	if p := newTransport(Policy{}, nil).Proxy; p != nil {
		t.Error("got a function for proxies, want none")
	}
}

func TestBackoffDoublesUpToAnHour(t *testing.T) {
	for _, c := range []struct {
		failures int
		most     time.Duration
	}{{0, time.Second}, {1, time.Second}, {2, 2 * time.Second}, {5, 16 * time.Second}, {12, 2048 * time.Second},
		{13, time.Hour}, {100000, time.Hour}} {
		for range 1000 {
			if got := backoff(c.failures); got > c.most || got <= c.most/2 {
				t.Errorf("after %d failures: got %v, want up to %v and more than its half", c.failures, got, c.most)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"", 0}, {"0", 0}, {"30", 30 * time.Second}, {" 30 ", 30 * time.Second}, {"21600", retryMost}, {"21601", retryMost},
		{"99999999999999999999999", retryMost}, {"-5", 0}, {"1.5", 0}, {"soon", 0},
		{"Mon, 23 Nov 2026 12:01:00 GMT", time.Minute}, {"Mon, 23 Nov 2026 11:00:00 GMT", 0},
		{"Mon, 23 Nov 2099 12:01:00 GMT", retryMost}, {"Monday, 23-Nov-26 12:00:10 GMT", 10 * time.Second},
	} {
		h := http.Header{"Retry-After": {c.text}}
		expect.Equal(t, retryAfter(h, now), c.want, "%q", c.text)
	}
}

// TestAMessageIsBounded makes messages just below and at each limit on entries and bytes. A message that has reached a
// limit must say that more entries may follow.
func TestAMessageIsBounded(t *testing.T) {
	const half = MaxBytes / 2
	same := func(n, size int) []int { return slices.Repeat([]int{size}, n) }
	for _, c := range []struct {
		name  string
		sizes []int
		upto  int64
		full  bool
	}{
		{"few", same(3, 100), 3, false},
		{"a large one behind it", []int{3, MaxBytes}, 1, true},
		{"many", same(150, 100), MaxEntries, true},
		{"the most entries", same(MaxEntries, 3), MaxEntries, true},
		{"one entry less", same(MaxEntries-1, 3), MaxEntries - 1, false},
		{"large ones", same(10, 30<<10), 2, true},
		{"exact", same(200, MaxBytes/100), 100, true},
		{"one larger", same(2, 1<<20), 1, true},
		{"the half of all bytes", []int{half}, 1, false},
		{"more than the half", []int{half + 1}, 1, true},
		{"all bytes", []int{half, half}, 2, true},
		{"a byte more", []int{half, half + 1}, 1, true},
	} {
		var entries []Entry
		for i, size := range c.sizes {
			entries = append(entries, Entry{int64(i + 1), []byte(`"` + strings.Repeat("x", size-2) + `"`)})
		}
		of := func(generation int64) message {
			return newMessage(Endpoint{ID: "a", Generation: generation}, entries, func(p int64) string { return fmt.Sprint(p) })
		}
		m, again, other := of(1), of(1), of(2)
		if m.upto != c.upto || m.first != 1 || m.full != c.full {
			t.Errorf("%s: got entries %d to %d, more may follow: %t; want 1 to %d, %t", c.name, m.first, m.upto, m.full,
				c.upto, c.full)
		}
		if size := int64(cap(m.body)); c.sizes[0] <= MaxBytes && size > usual {
			t.Errorf("%s: got %d bytes, want at most %d", c.name, size, usual)
		}
		if m.id != again.id || m.id == other.id || string(m.body) != string(again.body) {
			t.Errorf("%s: got ids %s, %s and %s, want two equal ones and another after a replay", c.name, m.id, again.id,
				other.id)
		}
	}
}

// TestAChallengeHasATextThatNobodyKnows makes two challenges for the same endpoint. Their texts must differ, and
// only an answer with the right text may count.
func TestAChallengeHasATextThatNobodyKnows(t *testing.T) {
	e := Endpoint{ID: "a", Generation: 1}
	first, want := newChallenge(e, "now")
	second, other := newChallenge(e, "now")
	if len(want) < 20 || want == other || first.id == "" || first.id == second.id {
		t.Errorf("got the texts %q and %q, the ids %q and %q; want long texts and ids that differ",
			want, other, first.id, second.id)
	}
	for body, is := range map[string]bool{
		`{"challenge":"` + want + `"}`:          true,
		`{"challenge":"` + other + `"}`:         false,
		`{}`:                                    false,
		``:                                      false,
		`{"challenge":"` + want + `"} and more`: false,
		`{"challenge":"` + want + `","Challenge":["` + want + `"]}`: false,
	} {
		expect.Equal(t, isAnswer([]byte(body), want), is, "%s", body)
	}
}

func TestLanesAreBoundedAndApart(t *testing.T) {
	l := newLanes(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var in []*slot
	enter := func(ctx context.Context, broker string, slow bool, bytes int64) error {
		s, err := l.enter(ctx, broker, slow, bytes)
		if err == nil {
			in = append(in, s)
		}
		return err
	}
	for range 4 {
		expect.OK(t, enter(t.Context(), "a", true, usual))
	}
	expect.Err(t, enter(ended, "b", true, 1), context.Canceled, "beyond the memory of the slow ones")
	expect.Nil(t, enter(t.Context(), "b", false, usual), "a fast one beside them")
	for _, c := range []struct {
		bytes int64
		want  bool
	}{{10, true}, {10, true}, {usual, false}} {
		expect.Equal(t, in[0].shrink(c.bytes), c.want, "shrink to %d", c.bytes)
	}
	expect.Nil(t, enter(t.Context(), "b", true, usual-10), "after one has shrunk")
	for _, s := range in {
		s.leave()
	}
	in = nil
	for range maxOfBroker {
		expect.OK(t, enter(t.Context(), "a", false, 1))
	}
	expect.Err(t, enter(ended, "a", false, 1), context.Canceled, "one more of a broker")
	if err := enter(t.Context(), "b", false, 100<<20); err != nil {
		t.Errorf("a message that is larger than the memory: got %v, want none", err)
	} else if !in[len(in)-1].shrink(100 << 20) {
		t.Error("a message that is larger than the memory: got that it does not fit, want that it has the whole lane")
	}
	for _, s := range in {
		s.leave()
	}
	if len(l.shares.brokers) > 0 {
		t.Errorf("got %d brokers at the end, want 0", len(l.shares.brokers))
	}
}
