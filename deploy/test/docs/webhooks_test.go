package docs

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// send sends a request with the key "broker", and stores the decoded answer in the parameter `into`. It fails the
// test if the request is refused.
func (p place) send(t *testing.T, method, path, body string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+"/api/2.5"+path, strings.NewReader(body))
	expect.OK(t, err)
	r.SetBasicAuth("broker", "")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	expect.OK(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		t.Fatalf("%s %s: got %d %s, %v; want success", method, path, answer.StatusCode, text, err)
	}
	expect.OK(t, json.Unmarshal(text, into))
}

// TestTheReceiverOfTheGuideWorks runs the receiver of the guide, in which only the port is changed. The receiver must answer the challenge, get a new asset, and refuse a message that is not signed.
func TestTheReceiverOfTheGuideWorks(t *testing.T) {
	needtest.Commands(t, "python3")
	p := newPlace(t)
	code := pageExamples(p.page(t), "receiver")
	if len(code) != 1 {
		t.Fatalf("got %d receivers, want one", len(code))
	}
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	_, port, _ := strings.Cut(addr, ":")
	var made struct {
		Data   struct{ ID string }
		Access struct{ Secret, Token string }
	}
	p.send(t, "POST", "/webhooks", `{"data":{"url":"http://127.0.0.1:`+port+`/","state":"disabled"}}`, &made)

	ctx, cancel := context.WithTimeout(t.Context(), shellTimeout)
	defer cancel()
	output := &processes.Output{}
	receiver := exec.CommandContext(ctx, "python3", "-c", strings.ReplaceAll(code[0], "9000", port))
	receiver.Env, receiver.Dir = []string{"SECRET=" + made.Access.Secret}, filepath.Clean(p.dir)
	receiver.Stdout, receiver.Stderr = output, output
	expect.OK(t, receiver.Start())
	defer func() {
		cancel()
		_ = receiver.Wait() // the error only says that cancel has killed the receiver
	}()
	for {
		answer, err := http.Post("http://127.0.0.1:"+port+"/", "application/json", strings.NewReader("{}"))
		if err == nil {
			answer.Body.Close()
			expect.Equal(t, answer.StatusCode, http.StatusUnauthorized, "a message without a signature")
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the receiver does not answer: %v; it printed: %s", err, output)
		}
		time.Sleep(20 * time.Millisecond)
	}
	id := made.Data.ID
	var asset struct {
		Data   struct{ ID string }
		Access struct{ Token string }
	}
	p.send(t, "PATCH", "/webhooks/"+id, `{"data":{"state":"active"}}`, &struct{}{})
	p.send(t, "POST", "/assets", clients.Creation, &asset)
	p.send(t, "PATCH", "/assets/"+asset.Data.ID+"?acc_token="+asset.Access.Token, `{"data":{"status":"pending"}}`, &struct{}{})
	if err := output.Await(ctx, "changed: "+asset.Data.ID); err != nil {
		t.Fatalf("%v; the receiver printed: %s", err, output)
	}
	var hook struct {
		Data struct{ State, LastError string }
	}
	p.send(t, "GET", "/webhooks/"+id, "", &hook)
	if hook.Data.State != "active" || hook.Data.LastError != "" {
		t.Errorf("got the webhook %+v, want it active and without an error", hook.Data)
	}
}
