package releases

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// TestRegistryctlRunsOnWindows builds and vets registryctl for Windows, and runs an import of 20 rows with photos under
// Wine, in a folder with blanks and Cyrillic letters. The first run is killed; the repeat must make no second asset.
// Then a changed table changes one.
func TestRegistryctlRunsOnWindows(t *testing.T) {
	needtest.Commands(t, "go", "wine")
	dir := filepath.Join(t.TempDir(), "Мої лоти 2026")
	expect.OK(t, os.MkdirAll(filepath.Join(dir, "фото"), 0o755))
	program := filepath.Join(dir, "registryctl.exe")
	windows := func(architecture string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0", "GOARCH="+architecture)
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: go %q: %v: %s", architecture, args, err, text)
		}
		return string(text)
	}
	const command = "./deploy/registry/cmd/registryctl"
	windows("arm64", "build", "-o", os.DevNull, command)
	windows("amd64", "build", "-o", program, command)
	for _, name := range []string{"deploy/registry/registryctl", "deploy/registry/bulk", "shared/durable"} {
		// Without their names, vet would also read tests, which need Linux.
		files := windows("amd64", "list", "-f", "{{range .GoFiles}}{{$.Dir}}/{{.}} {{end}}", "./"+name)
		windows("amd64", append([]string{"vet"}, strings.Fields(files)...)...)
	}

	addr := expect.Get(porttest.FreeAddr())(t)
	var output processes.Output
	registry := expect.Get(processes.Standalone(t.Context(), *bin, addr, filepath.Join(t.TempDir(), "data"), &output,
		"--base-url", "http://"+addr))(t)
	t.Cleanup(func() { expect.Err(t, registry.Stop(), nil, "stop") })
	prefix := filepath.Join(t.TempDir(), "wine")
	wine := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "wine", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "LANG=C.UTF-8",
			"REGISTRYCTL_URL=http://"+addr, "REGISTRYCTL_KEY=broker")
		return cmd
	}
	run := func(args ...string) string {
		t.Helper()
		text, err := wine(append([]string{program}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("registryctl.exe %q: %v: %s", args, err, text)
		}
		return string(text)
	}
	t.Cleanup(func() { _ = exec.Command("env", "WINEPREFIX="+prefix, "wineserver", "-k").Run() }) // it may have ended
	expect.OK(t, wine("cmd", "/c", "exit").Run())
	expect.OK(t, os.WriteFile(filepath.Join(prefix, "drive_c/windows/system32/bcryptprimitives.dll"), randomLibrary(), 0o644))

	run("assets", "import", "--template", "зразок.csv", "--lang", "uk")
	sample := expect.Get(os.ReadFile(filepath.Join(dir, "зразок.csv")))(t)
	table, _, _ := strings.Cut(string(sample), "\n")
	for n := range 20 {
		photo := fmt.Sprintf("%d-й.jpg", n)
		table += fmt.Sprintf("\n%d;Склад № %d;Приміщення;%d,5;MTK;06111000-3;Земля;Львівська область;Львів;вул. Зелена;12/К;20.11.2026;"+
			"Фонд;00032945;Олена;olena@example.ua;%s;\r", n, n, n+1, photo)
		expect.OK(t, os.WriteFile(filepath.Join(dir, "фото", photo), bytes.Repeat([]byte{0xff, 0xd8, byte(n)}, 100), 0o600))
	}
	expect.OK(t, os.WriteFile(filepath.Join(dir, "лоти.csv"), []byte(table+"\n"), 0o600))
	if said := run("assets", "import", "лоти.csv", "--folder", "фото", "--check"); !strings.Contains(said, "20 rows with 20 documents") {
		t.Fatalf("the check: got %q, want 20 rows without faults", said)
	}
	list := []string{"assets", "import", "лоти.csv", "--folder", `Z:` + strings.ReplaceAll(dir, "/", `\`) + `\фото`}
	killed, access := wine(append([]string{program}, list...)...), filepath.Join(dir, "лоти.csv.access")
	expect.OK(t, killed.Start())
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(access); err == nil && bytes.Count(text, []byte("\n")) > 8 {
			break
		}
	}
	expect.OK(t, killed.Process.Kill())
	_ = killed.Wait() // it was killed
	if said := run(list...); !strings.Contains(said, "20 of 20 rows are done") {
		t.Errorf("the repeat: got %q, want all rows", said)
	}
	if mode := expect.Get(os.Stat(access))(t).Mode(); mode.Perm()&0o007 != 0 {
		t.Errorf("got the mode %v, want nothing for others", mode)
	}
	changed := strings.Replace(table, "Склад № 7;", "Склад № 77;", 1)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "лоти.csv"), []byte(changed+"\n"), 0o600))
	run(append(list, "--yes")...)
	var own struct{ Data []struct{ Title string } }
	req := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+addr+"/api/2.5/me/assets?limit=100&opt_fields=title", nil))(t)
	req.SetBasicAuth("broker", "")
	resp := expect.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	expect.OK(t, json.NewDecoder(resp.Body).Decode(&own))
	renamed := slices.IndexFunc(own.Data, func(a struct{ Title string }) bool { return a.Title == "Склад № 77" })
	expect.ErrorIf(t, len(own.Data) != 20 || renamed < 0, "got %v, want 20 assets, one with its new title", own.Data)
}

// randomLibrary returns a bcryptprimitives.dll, which programs of Go need and Wine 8 lacks. Its one function leads to
// that of another library.
func randomLibrary() []byte {
	const place, names, forward = 0x1000, 0x80, 0x90
	file := make([]byte, 0x400)
	put := func(at int, values ...any) {
		for _, v := range values {
			if text, is := v.(string); is {
				at += copy(file[at:], text)
				continue
			}
			n, _ := binary.Encode(file[at:], binary.LittleEndian, v) // the file is long enough
			at += n
		}
	}
	const to = "advapi32.SystemFunction036\x00"
	put(0, "MZ")
	put(0x3c, uint32(0x40))
	put(0x40, "PE\x00\x00", uint16(0x8664), uint16(1), [3]uint32{}, uint16(240), uint16(0x2022), // a library for amd64
		uint16(0x20b), uint16(0), [2]uint32{0, 0x200}, [3]uint32{0, 0, place},
		uint64(0x180000000), [2]uint32{0x1000, 0x200}, [6]uint16{6, 0, 0, 0, 6, 0}, [4]uint32{0, 0x2000, 0x200, 0}, uint16(3), uint16(0x100),
		[4]uint64{1 << 20, 1 << 12, 1 << 20, 1 << 12}, [2]uint32{0, 16}, [2]uint32{place, forward + uint32(len(to))})
	put(0x40+4+20+240, ".rdata\x00\x00", [4]uint32{0x200, place, 0x200, 0x200}, [2]uint32{}, uint32(0), uint32(0x40000040))
	put(0x200, [3]uint32{}, [8]uint32{place + 0x60, 1, 1, 1, place + 0x28, place + 0x2c, place + 0x30}) // the list of exports
	put(0x228, uint32(place+forward), uint32(place+names))
	put(0x260, "bcryptprimitives.dll\x00")
	put(0x200+names, "ProcessPrng\x00")
	put(0x200+forward, to)
	return file
}
