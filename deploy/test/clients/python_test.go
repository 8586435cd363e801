package clients

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// absolutePython returns the environment variable that tells Python where the client is.
func absolutePython(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(python)
	expect.OK(t, err)
	return "PYTHONPATH=" + path
}

func TestPythonClientPassesItsOwnTests(t *testing.T) {
	needtest.Commands(t, "python3")
	program(t, python, []string{"PYTHONDONTWRITEBYTECODE=1"}, "python3", "-W", "error", "-m", "unittest", "-b")
}

func TestPythonTypesAreConsistent(t *testing.T) {
	needtest.Commands(t, "mypy")
	program(t, python, nil, "mypy", "--strict", "--python-version", "3.11", "--cache-dir", t.TempDir(), ".",
		"../../deploy/test/clients/scenario.py", "../../deploy/test/clients/live.py",
		"../../deploy/test/clients/hostile.py")
}

func TestPythonClientPassesTheScenario(t *testing.T) {
	needtest.Commands(t, "python3")
	s := newStage(t, 0)
	program(t, ".", append(s.env(), absolutePython(t)), "python3", "-W", "error", "scenario.py")
	s.check(append(wanted(), otherData))
}

func TestPythonClientChecksCertificates(t *testing.T) {
	needtest.Commands(t, "python3")
	s := newStage(t, 0)
	secure := httptest.NewUnstartedServer(s.proxy)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // do not log the handshake that the client refuses
	secure.StartTLS()
	t.Cleanup(secure.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	expect.OK(t, os.WriteFile(authority, text, 0o600))
	const script = `
import ssl, sys
from asset_registry import Client, TransportError
print(Client(sys.argv[1], "broker", tls=ssl.create_default_context(cafile=sys.argv[2])).me()["broker"])
try:
    Client(sys.argv[1], "broker", attempts=1).me()
except TransportError as error:
    print(error)
`
	got := program(t, ".", []string{absolutePython(t), "PYTHONDONTWRITEBYTECODE=1"}, "python3", "-c", script,
		secure.URL, authority)
	want := "broker\nGET /api/2.5/me: SSLCertVerificationError: no whole answer\n"
	expect.Equal(t, got, want, "")
}
