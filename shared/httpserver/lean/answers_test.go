package lean

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// perform runs a program, in which each byte stands for a step of a handler.
func perform(w http.ResponseWriter, program string) {
	for i, step := range []byte(program) {
		switch step {
		case '2':
			w.WriteHeader(http.StatusOK)
		case 'n':
			w.WriteHeader(http.StatusNoContent)
		case 'm':
			w.WriteHeader(http.StatusNotModified)
		case '4':
			w.WriteHeader(http.StatusNotFound)
		case '7':
			w.WriteHeader(799)
		case 'h':
			w.Header().Add("X-Step", strconv.Itoa(i))
		case 'e':
			w.Header().Set("X-Ends", " a\r\nX-Split: 1\n")
			w.Header()["Not a name"] = []string{"x"}
			w.Header()["X-Empty"] = []string{"", "b"}
		case 't':
			w.Header().Set("Content-Type", "text/x")
		case 'z':
			w.Header().Set("Content-Encoding", "gzip")
		case 'c':
			w.Header().Set("Connection", "close")
		case 'l':
			w.Header().Set("Content-Length", "6")
		case 'i':
			w.Header().Set("Content-Length", "no number")
		case 'd':
			w.Header().Set("Date", "today")
		case 'w':
			n, err := io.WriteString(w, "<p>")
			w.Header().Add("X-Wrote", fmt.Sprint(n, err))
		case '0':
			_, _ = w.Write(nil)
		case 'b':
			_, _ = w.Write([]byte(strings.Repeat("big ", 5000)))
		case 'f':
			_ = http.NewResponseController(w).Flush()
		case 'r':
			w.Header().Set(http.TrailerPrefix+"X-End", "so")
		case 'p':
			panic(http.ErrAbortHandler)
		}
	}
}

func newPerformers(tb testing.TB) *pair {
	return newPair(tb, func(w http.ResponseWriter, r *http.Request) { perform(w, r.URL.Path[1:]) })
}

func (p *pair) compareAnswers(tb testing.TB, method, program string) {
	tb.Helper()
	if method == http.MethodHead {
		// For HEAD, leave out the steps i and p, because net/http acts differently. In step i, it sends a
		// Content-Length that is not a number. If the body is larger than its buffer, it sends the head before the
		// panic of step p, although it does not send the body.
		program = strings.NewReplacer("i", "", "p", "").Replace(program)
	}
	one := method + " /" + program + " HTTP/1.1\r\nHost: a\r\n\r\n"
	p.compare(tb, [][]byte{[]byte(one + one)})
}

func TestSameAnswersAsNetHTTP(t *testing.T) {
	p := newPerformers(t)
	for _, program := range []string{
		"", "w", "ww", "b", "bb", "bw", "wb", "fw", "wf", "wfw", "hwh", "2w", "2h", "2hw", "n", "nw", "m", "mw", "4w", "7w",
		"lw", "lww", "lwww", "lwfw", "lb", "iw", "tw", "zw", "tm", "lm", "ln", "cw", "wc", "cn", "ew", "we", "dw", "0", "0w",
		"rw", "wr", "wfr", "rwf", "rn", "p", "wp", "wfp", "bp", "24", "w4", "bfb", "l2fww", "cl", "l", "tl", "f", "ff",
		"i0r", "iwr", "i2r", "ir", "i4wr", "ibr",
	} {
		p.compareAnswers(t, http.MethodGet, program)
		p.compareAnswers(t, http.MethodHead, program)
	}
}

// FuzzSameAnswersAsNetHTTP compares the answers of both servers for handlers with arbitrary steps.
func FuzzSameAnswersAsNetHTTP(f *testing.F) {
	f.Add("hwfwb", false)
	f.Add("lwwr", true)
	f.Add("cmnw", false)
	p := newPerformers(f)
	f.Fuzz(func(t *testing.T, program string, head bool) {
		program = strings.Map(func(r rune) rune {
			if r > ' ' && r < '~' && !strings.ContainsRune("%?#/", r) {
				return r
			}
			return -1
		}, program)
		if len(program) > 40 {
			return
		}
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		p.compareAnswers(t, method, program)
	})
}
