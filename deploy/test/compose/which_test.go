package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestAnInstalledComposeIsUsed runs which.sh with several installed versions of Docker Compose. The script must
// print the command of an installed version. If it compiled Compose instead, it would print the path of the
// compiled program.
func TestAnInstalledComposeIsUsed(t *testing.T) {
	for _, c := range []struct{ plugin, program, want string }{
		{"2.26.1", "", "docker compose"},
		{"v2.39.2-desktop.1", "", "docker compose"},
		{"2.20.0", "2.27.0", "docker-compose"},
		{"", "2.30.1", "docker-compose"},
		{"2.9.0", "v5.0.0", "docker-compose"},
	} {
		dir := t.TempDir()
		write := func(name, version string) {
			text := "#!/bin/sh\nexit 1\n"
			if version != "" {
				text = "#!/bin/sh\necho " + version + "\n"
			}
			expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
		}
		write("docker", c.plugin)
		write("docker-compose", c.program)
		cmd := exec.CommandContext(t.Context(), "./which.sh")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		printed, err := cmd.Output()
		if got := strings.TrimSpace(string(printed)); err != nil || got != c.want {
			t.Errorf("plugin %q, program %q: got %q, %v; want %q", c.plugin, c.program, got, err, c.want)
		}
	}
}
