package porttest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestFreeAddrsDiffer starts several processes. Each process asks for addresses, and holds them until all processes
// have their addresses. No two addresses may be equal.
func TestFreeAddrsDiffer(t *testing.T) {
	const each, child = 100, "FREE_ADDR_TEST_CHILD"
	if os.Getenv(child) != "" {
		for range each {
			addr, err := FreeAddr()
			expect.OK(t, err)
			fmt.Println("addr", addr)
		}
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
			t.Fatal("got a line, want the end of the input")
		}
		return
	}
	seen := map[string]bool{}
	for range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		input, err1 := cmd.StdinPipe()
		output, err2 := cmd.StdoutPipe()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		expect.OK(t, cmd.Start())
		defer func() {
			expect.Try(t, input.Close())
			expect.Try(t, cmd.Wait())
		}()
		lines := bufio.NewScanner(output)
		for n := 0; n < each; {
			var addr string
			expect.FatalIf(t, !lines.Scan(), "got %d addresses, want %d", n, each)
			if _, err := fmt.Sscanf(lines.Text(), "addr %s", &addr); err != nil {
				continue
			}
			n++
			expect.ErrorIf(t, seen[addr], "got %s twice, want it once", addr)
			seen[addr] = true
		}
	}
}

func TestAFreeAddrIsFree(t *testing.T) {
	for range 20 {
		addr, err := FreeAddr()
		expect.OK(t, err)
		listener, err := net.Listen("tcp", addr)
		expect.OK(t, err)
		defer listener.Close()
	}
}
