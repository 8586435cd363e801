package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"asset-registry/shared/testing/expect"
)

// axe returns the script of axe-core, a library that finds accessibility faults.
var axe = sync.OnceValues(func() (string, error) {
	command := exec.Command("sh", "../../clients/npm.sh", ".")
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("install axe-core: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "axe-core", "axe.min.js"))
	return string(script), err
})

// findings returns the faults of a page, each with the elements where axe-core found it.
const findings = `axe.run(document, {resultTypes: ["violations"]}).then(found =>
	found.violations.map(v => v.id + ": " + v.nodes.map(n => n.target.join(" ")).join(", ")))`

// mustBeAccessible checks a page with axe-core: with the rules for WCAG 2.2 A and AA, and the rules for best
// practices.
func (b *browser) mustBeAccessible(name string) {
	b.t.Helper()
	if found := b.axeFindings(); len(found) > 0 {
		b.t.Errorf("%s: got the faults %q by axe-core, want none", name, found)
	}
}

func (b *browser) axeFindings() []string {
	b.t.Helper()
	script, err := axe()
	expect.OK(b.t, err)
	if !evaluate[bool](b, `"axe" in window`) {
		// DevTools runs this script, so the content policy of the page does not apply to it.
		evaluate[chromedp.Void](b, script+"; undefined")
	}
	return ask(b, chromedp.Evaluate[[]string](findings, chromedp.EvalAwaitPromise))
}

// TestAxeFindsFaults shows that axe-core finds the faults of a page that has some.
func TestAxeFindsFaults(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.goTo("/sign-in")
	b.mustBeAccessible("sign-in")
	evaluate[chromedp.Void](b, `document.querySelector("main").insertAdjacentHTML("beforeend",
		'<input type="text"><img src="/console/assets/icon.svg">'); undefined`)
	found := strings.Join(b.axeFindings(), "; ")
	for _, rule := range []string{"label", "image-alt"} {
		if !strings.Contains(found, rule+":") {
			t.Errorf("got the faults %q of a page without labels, want %s", found, rule)
		}
	}
}
