package browser

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"asset-registry/filesvc"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// TestMain runs the tests. But if the file service of a test has started this program to draw a picture, TestMain
// only draws the picture.
func TestMain(m *testing.M) {
	if filesvc.IsDrawing(os.Args[1:]) {
		os.Exit(filesvc.Draw())
	}
	os.Exit(m.Run())
}

// illustrate publishes an asset with an illustration, and returns the path of the illustration.
func (s *publicSite) illustrate(t *testing.T, p property, h hostile) string {
	t.Helper()
	var made struct {
		Data   struct{ ID string }
		Access struct{ Token string }
	}
	expect.OK(t, json.Unmarshal(s.send(t, "POST", "/assets", "broker", p.create(t)), &made))
	at := "/assets/" + made.Data.ID
	s.send(t, "PATCH", at, "administrator", `{"data":{"status":"pending"}}`)
	document, _ := upload(t, strings.TrimSuffix(s.api, "/api/2.5"), h)
	document["documentType"], document["title"] = "illustration", "Фасад"
	body, err := json.Marshal(map[string]any{"data": document})
	expect.OK(t, err)
	s.send(t, "POST", at+"/documents?acc_token="+made.Access.Token, "broker", string(body))
	file, _, _ := strings.Cut(document["url"], "?")
	return file[strings.Index(file, "/get/"):]
}

// startPictures starts a site with two illustrations, and returns their paths. No picture can be drawn from the
// second file, so the address of its picture answers with 404.
func startPictures(t *testing.T) (s *publicSite, drawn, undrawn string) {
	t.Helper()
	s = startSite(t)
	drawn = s.illustrate(t, properties[0], hostile{"photo.png", "image/png", redPNG(t)})
	undrawn = s.illustrate(t, properties[2], hostile{"half.png", "image/png", redPNG(t)[:100]})
	s.await(t, drawn+"/320", func(body []byte) bool { return bytes.HasPrefix(body, []byte("\xff\xd8")) })
	s.await(t, "/uk/", func(body []byte) bool {
		return bytes.Contains(body, []byte(drawn)) && bytes.Contains(body, []byte(undrawn))
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // wait until the file is public
		resp, err := http.Get(s.base + undrawn + "/320")
		expect.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %d for the picture of a file that nobody can draw, want 404", resp.StatusCode)
		}
	}
	return s, drawn, undrawn
}

// TestResultsHavePictures opens a page of results with both illustrations. Both must have the same size, and the
// layout must not move.
func TestResultsHavePictures(t *testing.T) {
	s, drawn, undrawn := startPictures(t)
	b := open(t, s.base)
	for _, screen := range []struct {
		name        string
		phone, dark bool
		side        float64
	}{{"wide-light", false, false, 136}, {"wide-dark", false, true, 136}, {"phone-light", true, false, 85}, {"phone-dark", true, true, 85}} {
		if screen.phone {
			b.phone()
		}
		b.dark(screen.dark)
		name := screen.name + "-site-pictures"
		b.goTo("/uk/")
		b.wait(`[...document.querySelectorAll(".hits img")].every(p => p.complete)`)
		if moved := ask(b, chromedp.Evaluate[string](shifts, chromedp.EvalAwaitPromise)); moved != "" {
			t.Errorf("%s: got a layout in which moved: %s; want one that stays", name, moved)
		}
		for at, isThere := range map[string]bool{drawn: true, undrawn: false} {
			box := evaluate[page.Viewport](b, `(() => {
				const picture = document.querySelector(".hits img[src^='`+at+`']");
				picture.scrollIntoView({behavior: "instant"});
				const box = picture.getBoundingClientRect();
				return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1};
			})()`)
			if box.Width != screen.side || box.Height != screen.side {
				t.Errorf("%s: got a picture of %v x %v, want %v", name, box.Width, box.Height, screen.side)
			}
			shot := command(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Clip: &box})
			if red := isRed(t, shot.Data); red != isThere || !isThere && !isPlain(t, shot.Data) {
				t.Errorf("%s: got the picture %t, want %t, and nothing in place of a missing one", name, red, isThere)
			}
		}
		b.mustFit(name)
		b.mustBeLegible(name)
		b.mustBeAccessible(name)
		b.screenshot(name)
	}
	b.mustBeContent()
}

// TestTheArchiveOfARecordIsAccessible opens a record with a file. Its archive can be had, and then cannot.
func TestTheArchiveOfARecordIsAccessible(t *testing.T) {
	s, drawn, _ := startPictures(t)
	b := open(t, s.base)
	b.goTo("/uk/")
	record := evaluate[string](b, `document.querySelector(".hits li:has(img[src^='`+drawn+`']) h3 a").pathname`)
	_, id, _ := strings.Cut(record, "/assets/")
	for _, screen := range screens[1:3] { // together they have both colours and both widths
		screen.show(b)
		for _, state := range []struct{ name, forged, says string }{
			{"archive", "", "Завантажити всі файли (ZIP)"},
			{"archive-later", "/get/" + id + "/documents.zip", "Архів усіх файлів зараз недоступний."},
		} {
			s.forger.set(func([]byte) []byte { return nil }, state.forged)
			name := screen.name + "-site-" + state.name
			b.goTo(record)
			b.mustSay(state.says)
			b.mustFit(name)
			b.mustBeLegible(name)
			b.mustBeAccessible(name)
			b.screenshot(name)
		}
	}
	b.mustBeContent()
}

// TestResultsHavePicturesInFirefox opens a page of results in Firefox. One illustration has a picture, the
// other has none. Firefox must show the picture, and must show nothing in place of the missing one.
func TestResultsHavePicturesInFirefox(t *testing.T) {
	needtest.Commands(t, "firefox-esr")
	s, drawn, undrawn := startPictures(t)
	f := openFirefox(t, s.base)
	f.goTo("/uk/")
	f.await(`[...document.querySelectorAll(".hits img")].every(p => p.complete)`)
	if shot := f.picture(".hits img[src^='" + drawn + "']"); !isRed(t, shot) {
		t.Error("got no picture, want it")
	}
	if shot := f.picture(".hits img[src^='" + undrawn + "']"); !isPlain(t, shot) {
		t.Error("got something in place of a missing picture, want nothing")
	}
}

// shifts is a script that names each element of the results that has moved while the page loaded, with its place
// before and after. A slow browser shows the head of the page in parts, and these move.
const shifts = `new Promise(tell => {
	const place = r => [r.x, r.y, r.width, r.height].join(" ");
	const isHit = s => s.node?.parentElement?.closest(".hits");
	const show = s => s.node.parentElement.outerHTML.slice(0, 200) + place(s.previousRect) + " -> " + place(s.currentRect);
	const add = all => tell(all.getEntries().flatMap(e => e.sources).filter(isHit).map(show).join("; "));
	new PerformanceObserver(add).observe({type: "layout-shift", buffered: true});
	setTimeout(tell, 200, ""); // nothing has moved
})`

// isPlain reports whether a screenshot has only one colour.
func isPlain(t *testing.T, screenshot []byte) bool {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(screenshot))
	expect.OK(t, err)
	all := picture.Bounds()
	for x := range all.Dx() {
		for y := range all.Dy() {
			if picture.At(x, y) != picture.At(0, 0) {
				return false
			}
		}
	}
	return true
}
