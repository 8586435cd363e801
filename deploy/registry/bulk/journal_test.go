package bulk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

func journal(t *testing.T, name string) *Journal {
	t.Helper()
	return expect.Get(OpenJournal(name, "http://registry", "broker"))(t)
}

func created(reference, id, token string) entry {
	return entry{Reference: reference, sums: sums{Bytes: "s"}, Data: &assetID{id}, Access: &client.Access{Token: client.Secret(token)}}
}

// TestAJournalThatBreaksOff cuts a journal off before and after each end of a line, as if a process was killed
// while it wrote. Then it opens the journal, which must have the steps of all complete lines.
func TestAJournalThatBreaksOff(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j := journal(t, name)
	for _, e := range []entry{
		created("a", "1", "t1"), {Reference: "a", Gone: true}, created("b", "2", "t2"),
		{Reference: "a", Name: "d", File: &client.StoredFile{URL: "u"}}, {Reference: "a", sums: sums{Same: "new"}, Base: "b"},
	} {
		expect.OK(t, j.add(e))
	}
	expect.OK(t, j.Close())
	whole := expect.Get(os.ReadFile(name))(t)
	cuts := []int{0, len(whole)}
	for at, c := range whole {
		if c == '\n' {
			cuts = append(cuts, at-9, at, at+1, at+9) // before and after the end of a line
		}
	}
	for _, cut := range cuts {
		cut = min(cut, len(whole))
		expect.OK(t, os.WriteFile(name, whole[:cut], 0o600))
		j := journal(t, name)
		lines := strings.Count(string(whole[:cut]), "\n")
		if lines > 0 && cut < len(whole) && whole[cut] == '\n' { // a whole line that lacks only its end counts
			lines++
		}
		if got, want := len(j.rows), max(0, min(lines-1, 1))+max(0, min(lines-3, 1)); got != want {
			t.Fatalf("after %d bytes, %d lines: got %d rows, want %d", cut, lines, got, want)
		}
		if a := j.known("a"); a != nil && (a.gone != (lines > 2) || (a.documents["d"].file.URL == "u") != (lines > 4) ||
			(a.sums.Same == "new" && a.base == "b") != (lines > 5) || a.access.Token != "t1") {
			t.Fatalf("after %d lines: got %+v, want the steps of these lines", lines, a)
		}
		expect.OK(t, errors.Join(j.add(created("c", "3", "t3")), j.Close()))
		j = journal(t, name)
		if c := j.known("c"); c == nil || c.access.Token != "t3" {
			t.Fatalf("after %d bytes: got %+v, want the row that was added", cut, c)
		}
		expect.OK(t, j.Close())
	}
}

func TestAJournalTakesTokensOfARecovery(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j := journal(t, name)
	err := errors.Join(j.add(entry{Reference: "a", sums: sums{Bytes: "s"}, Data: &assetID{"1"}}), j.Close())
	expect.OK(t, err)
	file := expect.Get(os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0))(t)
	_, err = fmt.Fprintln(file, `{"data":{"id":"1"},"access":{"token":"former","transfer":"x"}}`)
	_, err2 := fmt.Fprint(file, `{"data":{"id":"1"},"access":{"token":"new","transfer":"x"}}`) // an editor that ends no line
	expect.OK(t, errors.Join(err, err2, file.Close()))
	for range 2 {
		j = journal(t, name)
		if a := j.known("a"); a == nil || a.access.Token != "new" || a.sums.Bytes != "s" {
			t.Errorf("got %+v, want the row with the new token", a)
		}
		expect.OK(t, errors.Join(j.add(entry{Reference: "a", Gone: true}), j.Close()))
	}
}

func TestAJournalIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text, says string
		mode             os.FileMode
	}{
		{"another broker", `{"import":1,"registry":"http://registry","broker":"other"}` + "\n", "the broker other", 0o600},
		{"a file without lines", "\x89PNG\x00\x00", "line 1: this is not the journal", 0o600},
		{"JSON without lines", `{"id":"1"}`, "line 1: this is not the journal", 0o600},
		{"the beginning of another journal", `{"import":1,"registry":"http://other`, "line 1: this is not the journal", 0o600},
		{"another file", "Лот;Назва\n", "line 1: this is not the journal", 0o600},
		{"another version", `{"import":2,"registry":"http://registry","broker":"broker"}` + "\n", "line 1: this is not the journal", 0o600},
		{"others can read it", "", "other users can access it", 0o640},
		{"a line of a stranger", `{"import":1,"registry":"http://registry","broker":"broker"}` + "\n{\"gone\":true}\n", "line 2", 0o600},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "journal")
			expect.OK(t, errors.Join(os.WriteFile(name, []byte(c.text), c.mode), os.Chmod(name, c.mode)))
			_, err := OpenJournal(name, "http://registry", "broker")
			expect.Says(t, err, c.says, "")
			if text, err := os.ReadFile(name); err != nil || string(text) != c.text {
				t.Errorf("got %q, %v, want the file as it was", text, err)
			}
		})
	}
	name := filepath.Join(t.TempDir(), "journal")
	j := journal(t, name)
	defer j.Close()
	expect.SaysOf(t, "another import", "while it is open")(OpenJournal(name, "http://registry", "broker"))
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want the mode 0600", info, err)
	}
}

func TestManyWritersShareAJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j := journal(t, name)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for n := range 20 {
				id := fmt.Sprint(i, "-", n)
				expect.Try(t, j.add(created(id, id, id)))
			}
		})
	}
	writers.Wait()
	expect.OK(t, j.Close())
	j = journal(t, name)
	defer j.Close()
	expect.Equal(t, len(j.rows), 160, "rows")
}
