package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// fileSite is a registry with hostile files. It also serves the same files as a naive server sends them, a page
// that embeds all files, and the paths that the scripts in the files request.
type fileSite struct {
	*httptest.Server
	mu     sync.Mutex
	heard  map[string]bool // names of the scripts that have run
	naive  map[string]hostile
	frames []string // addresses of the files that the page embeds
}

// hostile is a file that an attacker uploads.
type hostile struct{ name, declared, text string }

// hostiles returns hostile files. When the script of a file runs, it requests the path that consists of /canary/,
// the prefix and the name of the file.
func hostiles(prefix string) []hostile {
	script := func(name string) string { return `new Image().src="/canary/` + prefix + name + `";` }
	tag := func(name string) string { return "<script>" + script(name) + "</script>" }
	const svg, xhtml = `<svg xmlns="http://www.w3.org/2000/svg">`, `<html xmlns="http://www.w3.org/1999/xhtml">`
	canary := `'/canary/` + prefix + `pdf'`
	return []hostile{
		{"svg", "image/svg+xml", svg + tag("svg") + `</svg>`},
		{"svg-as-png", "image/png", svg + tag("svg-as-png") + `</svg>`},
		{"html", "text/html", "<!DOCTYPE html>" + tag("html")},
		{"html-as-png", "image/png", "<!DOCTYPE html>" + tag("html-as-png")},
		{"html-as-pdf", "application/pdf", "<!DOCTYPE html>" + tag("html-as-pdf")},
		{"xhtml", "application/xhtml+xml", xhtml + tag("xhtml") + `</html>`},
		{"polyglot-gif", "text/html", "GIF89a" + tag("polyglot-gif")},
		{"polyglot-png", "text/html", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + tag("polyglot-png")},
		{"polyglot-pdf", "text/html", "%PDF-1.4\n" + tag("polyglot-pdf")},
		{"javascript", "text/javascript", script("javascript")},
		{"pdf-with-script", "application/pdf", redPDF(`/OpenAction<</S/JavaScript/JS(this.submitForm\(` + canary +
			`\);app.launchURL\(` + canary + `\);)>>`)},
	}
}

// byNaive lists the hostile files whose scripts run in a browser if a server sends each file with the type that its
// uploader has declared.
var byNaive = []string{
	"naive-html", "naive-javascript", "naive-polyglot-gif", "naive-polyglot-pdf", "naive-polyglot-png", "naive-svg", "naive-xhtml",
}

func startFileSite(t *testing.T) *fileSite {
	t.Helper()
	r, s := startRegistry(t), &fileSite{heard: map[string]bool{}, naive: map[string]hostile{}}
	var edge *gateway.Server
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		directory, name, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		switch directory {
		case "canary":
			s.mu.Lock()
			s.heard[name] = true
			s.mu.Unlock()
		case "naive":
			w.Header().Set("Content-Type", s.naive[name].declared)
			_, _ = io.WriteString(w, s.naive[name].text) // fails if the browser has closed the connection
		case "page":
			w.Header().Set("Content-Type", "text/html")
			for _, address := range s.frames {
				fmt.Fprintf(w, `<iframe src=%[1]q></iframe><object data=%[1]q></object><embed src=%[1]q><img src=%[1]q>`+
					`<script src=%[1]q></script>`, address)
			}
			fmt.Fprint(w, `<h1>loaded</h1>`)
		default:
			edge.Handler().ServeHTTP(w, q) // edge is set before a test sends a request
		}
	}))
	t.Cleanup(s.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	dir := t.TempDir()
	files, err := filesvc.New(t.Context(), filesvc.Config{
		Store: "file:" + filepath.Join(dir, "files.db"), Bytes: filepath.Join(dir, "files"), Secrets: secrets, Log: log,
		Assets: httpserver.InProcess(r.assets), BaseURL: s.URL,
	})
	expect.OK(t, err)
	closeAtEnd(t, files.Close)
	edge, err = gateway.New(t.Context(), gateway.Config{
		Auth: r.toAuth, Assets: r.assets, Files: files.Handler(), Secrets: secrets, Log: log,
	})
	expect.OK(t, err)
	closeAtEnd(t, edge.Close)
	return s
}

// upload uploads a file, and returns the address at which everybody can read it.
func (s *fileSite) upload(t *testing.T, h hostile) string {
	t.Helper()
	_, address := upload(t, s.URL, h)
	return address
}

// upload uploads a file to a registry. It returns the JSON members with which a document refers to the file, and a
// signed address of the file.
func upload(t *testing.T, base string, h hostile) (document map[string]string, address string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="` + h.name + `"`}, "Content-Type": {h.declared},
	})
	expect.OK(t, err)
	_, _ = io.WriteString(part, h.text) // writing to a buffer cannot fail
	expect.OK(t, w.Close())
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/upload", &b)
	expect.OK(t, err)
	q.SetBasicAuth("broker", "")
	q.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := http.DefaultClient.Do(q)
	expect.OK(t, err)
	defer resp.Body.Close()
	var got struct {
		Data   map[string]string `json:"data"`
		GetURL string            `json:"get_url"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.GetURL == "" {
		t.Fatalf("upload %s: got %d, %v, want an address", h.name, resp.StatusCode, err)
	}
	return got.Data, got.GetURL
}

// embed fills the page with all hostile files, both from the registry and from the naive server.
func (s *fileSite) embed(t *testing.T) {
	t.Helper()
	for _, h := range hostiles("naive-") {
		s.naive[h.name] = h
		s.frames = append(s.frames, s.URL+"/naive/"+h.name)
	}
	for _, h := range hostiles("") {
		s.frames = append(s.frames, s.upload(t, h))
	}
}

// ran returns the names of the scripts that have run.
func (s *fileSite) ran() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.heard {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// redPDF returns a PDF with one red page. The text in the parameter `more` is added to the PDF's catalogue.
func redPDF(more string) string {
	const page = "0.8 0.1 0.1 rg 0 0 600 800 re f"
	out, places := "%PDF-1.4\n", []int{}
	for n, object := range []string{
		"<</Type/Catalog/Pages 2 0 R" + more + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(page), page),
	} {
		places = append(places, len(out))
		out += fmt.Sprintf("%d 0 obj%s\nendobj\n", n+1, object)
	}
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(places)+1)
	for _, at := range places {
		table += fmt.Sprintf("%010d 00000 n \n", at)
	}
	return fmt.Sprintf("%s%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", out, table, len(places)+1, len(out))
}

// redPNG returns a red picture.
func redPNG(t *testing.T) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 400, 400))
	for at := range picture.Pix {
		picture.Pix[at] = []byte{200, 30, 30, 255}[at%4]
	}
	var b bytes.Buffer
	expect.OK(t, png.Encode(&b, picture))
	return b.String()
}

// isRed reports whether at least a tenth of a screenshot is red.
func isRed(t *testing.T, screenshot []byte) bool {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(screenshot))
	expect.OK(t, err)
	red, all := 0, picture.Bounds()
	for x := range all.Dx() {
		for y := range all.Dy() {
			if c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA); c.R > 150 && c.G < 80 && c.B < 80 {
				red++
			}
		}
	}
	return red*10 > all.Dx()*all.Dy()
}

// seen returns files that a browser must display.
func seen(t *testing.T) []hostile {
	return []hostile{{"plan.pdf", "application/pdf", redPDF("")}, {"photo.png", "image/png", redPNG(t)}}
}

// TestFilesInChromium opens a page with hostile files from a naive server and from the file service. No script in a
// file of the file service may run. Then it opens a PDF and a photo, and the browser must show them (docs/files.md,
// D6).
func TestFilesInChromium(t *testing.T) {
	s := startFileSite(t)
	b := open(t, s.URL)
	s.embed(t)
	b.goTo("/page")
	b.mustSay("loaded")
	s.judge(t)
	for _, h := range seen(t) {
		address := s.upload(t, h)
		b.run(chromedp.Navigate(address))
		for end := time.Now().Add(time.Minute); !isRed(t, ask(b, chromedp.CaptureScreenshot())); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: got nothing red on the screen for a minute, want the file", h.name)
			}
		}
	}
}

// judge checks that exactly the scripts of the files in byNaive have run. The naive server has sent these files.
func (s *fileSite) judge(t *testing.T) {
	t.Helper()
	if got := s.ran(); !slices.Equal(got, byNaive) {
		t.Errorf("got the scripts %q run, want %q", got, byNaive)
	}
}

// TestFilesInFirefox opens the files of TestFilesInChromium in Firefox.
func TestFilesInFirefox(t *testing.T) {
	needtest.Commands(t, "firefox-esr")
	s, home := startFileSite(t), t.TempDir()
	show := func(address string) []byte {
		t.Helper()
		to := filepath.Join(home, "screenshot.png")
		cmd := exec.CommandContext(t.Context(), "firefox-esr", "--headless", "--no-remote", "--profile", home,
			"--window-size=800,600", "--screenshot", to, address)
		cmd.Env = append(os.Environ(), "HOME="+home)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("firefox: %v: %s", err, text)
		}
		screenshot, err := os.ReadFile(to)
		expect.OK(t, err)
		return screenshot
	}
	s.embed(t)
	show(s.URL + "/page")
	s.judge(t)
	for _, h := range seen(t) {
		if !isRed(t, show(s.upload(t, h))) {
			t.Errorf("%s: got nothing red on the screen, want the file", h.name)
		}
	}
}
