package clients

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// lastTitle is the title of the last asset that a follower must see.
const lastTitle = "Asset 4"

// live publishes two assets. When the follower has reported them, live kills the registry, and publishes two more
// assets. It then checks that the follower has seen each asset once, and that it continued where its stream had
// ended. It does all this with a registry, and with a mirror of the registry's mirror.
func live(t *testing.T, follow func(*stage)) {
	t.Helper()
	for _, c := range []struct {
		name     string
		mirrored int
	}{{"a registry", 0}, {"a mirror of a mirror", 2}} {
		t.Run(c.name, func(t *testing.T) { liveAt(t, c.mirrored, follow) })
	}
}

func liveAt(t *testing.T, mirrored int, follow func(*stage)) {
	t.Helper()
	s := newStage(t, mirrored)
	broker := (&goScenario{t: t, stage: s}).client("broker")
	ended := make(chan error, 1)
	go func() { ended <- s.publishAround(broker) }()
	follow(s)
	expect.Try(t, <-ended)
	var want []step
	for n := range 4 {
		want = append(want, step{"live", fmt.Sprint("Asset ", n+1)})
	}
	expect.NoDiff(t, cmp.Diff(want, s.reported()), "changes")
	streams := 0
	for _, r := range s.proxy.requests() {
		if !r.stream {
			continue
		}
		if streams++; (r.from == "") != (streams == 1) {
			t.Errorf("stream %d begins after %q, want the first one from the beginning, the others from an offset",
				streams, r.from)
		}
	}
	if streams < 2 {
		t.Errorf("got %d streams, want a second one after the registry was killed", streams)
	}
}

// publishAround publishes two assets, waits until they are reported, kills the registry, and publishes two more
// assets.
func (s *stage) publishAround(broker *client.Client) error {
	for n := range 4 {
		made, err := broker.Create(s.t.Context(), number(fmt.Sprint(n+1)))
		if err != nil {
			return err
		}
		_, err = broker.Publish(s.t.Context(), made.Asset.ID,
			client.Write{Token: made.Access.Token, IfMatch: made.Asset.Tag})
		if err != nil {
			return err
		}
		if n != 1 {
			continue
		}
		for seen := range 2 {
			select {
			case <-s.told:
			case <-time.After(patience):
				return fmt.Errorf("got %d changes within %v, want 2", seen, patience)
			}
		}
		if err := s.kill(); err != nil {
			return err
		}
	}
	return nil
}

// liveEnv returns the environment variables for a program that follows the feed.
func (s *stage) liveEnv() []string { return append(s.env(), "LAST="+lastTitle) }

func TestGoClientFollowsStreams(t *testing.T) {
	live(t, func(s *stage) {
		g := &goScenario{t: t, stage: s}
		for page, err := range g.liveClient().Follow(t.Context(), client.Feed{Live: true, Fields: []string{"title"}}, 0) {
			g.must(err)
			for _, asset := range page.Assets {
				if g.report("live", asset.Title); asset.Title == lastTitle {
					return
				}
			}
		}
	})
}

// liveClient returns a client that can read streams. Its transport is not goScenario, because goScenario returns an
// answer only after it has read the whole answer.
func (g *goScenario) liveClient() *client.Client {
	c, err := client.New(client.Config{URL: g.stage.api.URL, Retry: client.Retry{Tries: 20}})
	g.must(err)
	return c
}

func TestPythonClientFollowsStreams(t *testing.T) {
	needtest.Commands(t, "python3")
	live(t, func(s *stage) {
		program(t, ".", append(s.liveEnv(), absolutePython(t)), "python3", "-W", "error", "live.py")
	})
}

func TestTypeScriptClientFollowsStreams(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	dir, _ := compiled(t)
	copyAll(t, "live.mjs", filepath.Join(dir, "live.mjs"))
	live(t, func(s *stage) { program(t, dir, s.liveEnv(), "node", "live.mjs") })
}

// TestEventSourcePackageFollowsStreams follows the feed with a client for event streams. Others have written this
// client.
func TestEventSourcePackageFollowsStreams(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	lines := strings.Fields(program(t, ".", nil, "sh", "npm.sh", "eventsource"))
	module := filepath.Join(lines[len(lines)-1], "eventsource", "dist", "index.js")
	script := fmt.Sprintf(`import { EventSource } from %q; import { follow } from "./eventsource.mjs";
const { REGISTRY, CONTROL, LAST } = process.env; await follow(EventSource, REGISTRY, CONTROL, LAST);`, module)
	live(t, func(s *stage) {
		program(t, ".", s.liveEnv(), "node", "--input-type=module", "--eval", script)
	})
}

// livePage is a web page that follows the feed. When it has seen the last asset, it reports the result to the test.
const livePage = `<!doctype html>
<title>live</title>
<script type="module">
const finish = (error) => fetch("/finish", { method: "POST", body: error });
try {
	const { follow } = await import("/eventsource.mjs");
	await follow(EventSource, %q, %q, "` + lastTitle + `");
	await finish("");
} catch (error) {
	await finish(String(error.stack));
}
</script>
`

func TestEventSourceOfChromiumFollowsStreams(t *testing.T) {
	needtest.Commands(t, "chromium")
	live(t, func(s *stage) { finish(t, s.site(livePage, "eventsource.mjs")) })
}
