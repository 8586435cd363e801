package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// likeHTTP are texts that look like a part of HTTP, of one of the registry's answers, or of a stream.
var likeHTTP = []string{
	"HTTP/1.1 417 ",
	"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"0\r\n\r\n",
	"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n",
	`{"status":"error","errors":[]}` + "\n",
	"id: 1\ndata: {}\n\n",
}

// testTextsLikeHTTP creates assets with the texts of likeHTTP over raw connections, and reads each asset with every
// kind of request. All reads of an asset must return the same bytes.
// Promises: texts
func testTextsLikeHTTP(t *testing.T, a api) {
	for _, one := range likeHTTP {
		t.Run(fmt.Sprintf("%.16q", one), func(t *testing.T) {
			asset := validAsset().set("description", strings.Repeat(one, 1+12_000/len(one)))
			follower := a.openStream(t, call{path: "/assets?opt_fields=description&offset=" + url.QueryEscape(a.now(t)),
				header: map[string]string{"Accept": asEvents}})
			id := a.createOnWire(t, asset)
			want := a.read(t, id).must(t, 200).text
			entry := follower.entryOf(t, id)
			var shown struct{ Description string }
			if err := json.Unmarshal([]byte(entry), &shown); err != nil || shown.Description != asset["description"] {
				t.Errorf("in a stream: got %.200s, %v; want the description", entry, err)
			}
			target := "/api/" + a.version + "/assets/" + id
			for _, last := range []string{
				" HTTP/1.1\r\nHost: a\r\n\r\n", " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", " HTTP/1.0\r\n\r\n",
				" HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
			} {
				for _, first := range []string{
					"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n",
					"POST " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
				} {
					_, got := a.onWire(t, first, "GET "+target+last)
					if text := got[1]; text != want {
						t.Errorf("after %.20q, with %q: got %d bytes %.100q, want %d bytes", first, last, len(text), text, len(want))
					}
				}
			}
		})
	}
}

// createOnWire creates an asset and publishes it, and returns its id. Each of the two requests uses a new
// connection, and the chunks of its body begin inside the texts.
func (a api) createOnWire(t *testing.T, asset fields) (id string) {
	t.Helper()
	send := func(method, path, head string, body any) map[string]any {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request := method + " /api/" + a.version + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
			"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("broker:")) + "\r\n" + head +
			"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
		// Each \n in the JSON ends a chunk, so that the text behind it is at the beginning of a line on the wire.
		for _, part := range strings.SplitAfter(string(text), `\n`) {
			request += fmt.Sprintf("%x\r\n%s\r\n", len(part), part)
		}
		status, got := a.onWire(t, request+"0\r\n\r\n")
		var answer map[string]any
		if err := json.Unmarshal([]byte(got[0]), &answer); err != nil || status/100 != 2 {
			t.Fatalf("%s %s: got %d %.300q, %v; want an answer in JSON", method, path, status, got[0], err)
		}
		return answer
	}
	answer := send("POST", "/assets", "", data(asset))
	id, token := text(at(answer["data"], "id")), text(at(answer["access"], "token"))
	if id == "" || token == "" {
		t.Fatalf("got the id %q and an owner token of %d characters, want both", id, len(token))
	}
	send("PATCH", "/assets/"+id, "X-Access-Token: "+token+"\r\n", data(fields{"status": "pending"}))
	return id
}

// onWire sends all requests together on one connection. It returns the status of the last answer, and the bodies of
// all answers.
func (a api) onWire(t *testing.T, requests ...string) (status int, bodies []string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	go io.WriteString(conn, strings.Join(requests, ""))
	reader := bufio.NewReader(conn)
	for i := range requests {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("answer %d: got %d bytes, %v; want all", i+1, len(body), err)
		}
		status, bodies = resp.StatusCode, append(bodies, string(body))
	}
	return status, bodies
}
