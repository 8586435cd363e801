package file

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

var (
	broker  = identity.Identity{Broker: "broker1", KeyID: "k1", Role: identity.Broker}
	another = identity.Identity{Broker: "broker2", KeyID: "k2", Role: identity.Broker}
	start   = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
)

// bench is a service with stores in memory and a clock. Its collector needs no hours; clock_test.go tests them.
type bench struct {
	*Service
	memory *memory
	clock  time.Time
}

func newBench() *bench {
	b := &bench{clock: start}
	b.memory = newMemory(func() time.Time { return b.clock })
	limits := Limits{FileBytes: 1000, BrokerBytes: 3000, Waiting: 3}
	b.Service = NewService(b.memory, b.memory, b.memory, limits, func() time.Time { return b.clock })
	b.hour, b.day = 0, -1000
	return b
}

// Collect runs the collector twice. The first run sees the files, and the second one may collect them.
func (b *bench) Collect(ctx context.Context) (Collection, error) {
	steady := func() time.Duration { return 0 }
	first, err := b.Service.Collect(ctx, steady)
	if err != nil {
		return first, err
	}
	done, err := b.Service.Collect(ctx, steady)
	done.Files, done.Bytes = done.Files+first.Files, done.Bytes+first.Bytes
	done.Blobs, done.Again = done.Blobs+first.Blobs, done.Again+first.Again
	return done, err
}

func sum(text string) string {
	of := md5.Sum([]byte(text))
	return hex.EncodeToString(of[:])
}

func upload(text string) Upload {
	return Upload{Body: strings.NewReader(text), Title: "a.txt", Declared: "text/plain", Length: int64(len(text))}
}

func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	expect.OK(t, err)
	return value
}

func (b *bench) register(t *testing.T, text string) File {
	t.Helper()
	f, err := b.Register(t.Context(), broker, sum(text))
	return must(t, f, err)
}

// stored uploads a new file.
func (b *bench) stored(t *testing.T, text string) File {
	t.Helper()
	f, err := b.Add(t.Context(), broker, upload(text))
	return must(t, f, err)
}

// The method `has` fails the test unless the file has this text.
func (b *bench) has(t *testing.T, id, want string) {
	t.Helper()
	f := expect.Get(b.Get(t.Context(), id))(t)
	blob := expect.Get(b.Open(t.Context(), f))(t)
	got := expect.Get(io.ReadAll(blob))(t)
	if string(got) != want || f.Size != int64(len(want)) || f.MD5 != sum(want) {
		t.Errorf("got %q and %+v, want %q", got, f, want)
	}
}

// TestUploads makes uploads to a file that was registered with the MD5 of "content". An upload that is refused
// must change nothing. A later upload with the right bytes must succeed.
func TestUploads(t *testing.T) {
	cut := errors.New("the client has left")
	for _, c := range []struct {
		name   string
		by     identity.Identity
		upload Upload
		want   string // text of the error; "": no error
	}{
		{"the right bytes", broker, upload("content"), ""},
		{"bytes in small pieces", broker, Upload{Body: iotest.OneByteReader(strings.NewReader("content"))}, ""},
		{"other bytes", broker, upload("contents"), "body/file: Invalid checksum"},
		{"no bytes", broker, upload(""), "body/file: Invalid checksum"},
		{"half of the bytes", broker,
			Upload{Body: io.MultiReader(strings.NewReader("cont"), iotest.ErrReader(cut))}, cut.Error()},
		{"too many bytes", broker, Upload{Body: strings.NewReader(strings.Repeat("x", 1001)), Length: -1},
			"body/file: The file has more than 1000 bytes."},
		{"too many bytes by the headers", broker, Upload{Body: iotest.ErrReader(cut), Length: 1000 + maxForm + 1},
			"body/file: The file has more than 1000 bytes."},
		{"another broker", another, upload("content"), "url/permission: Forbidden: another broker registered this file."},
	} {
		b := newBench()
		f := b.register(t, "content")
		_, err := b.Upload(t.Context(), c.by, f.ID, c.upload)
		if c.want == "" {
			must(t, f, err)
			b.has(t, f.ID, "content")
			continue
		}
		expect.Says(t, err, c.want, "%s", c.name)
		if now, err := b.Get(t.Context(), f.ID); err != nil || now != f || len(b.memory.blobs) > 0 {
			t.Errorf("%s: got %+v, %v and %d blobs, want the file as it was", c.name, now, err, len(b.memory.blobs))
		}
		expect.ErrOf(t, nil, "%s, then the right bytes", c.name)(b.Upload(t.Context(), broker, f.ID, upload("content")))
	}
}

// TestUploadsToNoFile uploads to a file that does not exist, and to files that are removed or deleted before or
// during the upload. Each upload must be refused with the reason, and its bytes must go.
func TestUploadsToNoFile(t *testing.T) {
	for _, c := range []struct {
		name  string
		state State
		want  fault.Kind
	}{{"no file", "", fault.NotFound}, {"removed", Removed, fault.Gone}, {"collected", Collected, fault.NotFound}} {
		for _, during := range []bool{false, true} {
			b := newBench()
			f := b.register(t, "content")
			change := readerFunc(func([]byte) (int, error) {
				now := f
				now.State, now.Revision = c.state, f.Revision+1
				if b.memory.files[f.ID] = now; c.state == "" {
					delete(b.memory.files, f.ID)
				}
				return 0, io.EOF
			})
			u := upload("content")
			if during {
				u.Body = io.MultiReader(u.Body, change)
			} else {
				change(nil)
			}
			if _, err := b.Upload(t.Context(), broker, f.ID, u); fault.KindOf(err) != c.want || len(b.memory.blobs) != 0 {
				t.Errorf("%s, during the upload: %t: got %v and %d blobs, want kind %d and none", c.name, during, err,
					len(b.memory.blobs), c.want)
			}
		}
	}
}

// TestABodyThatFailsOnceIsNoFile has a body that fails after half of its bytes, and then ends as if it were whole.
// The half must not be stored.
func TestABodyThatFailsOnceIsNoFile(t *testing.T) {
	b, failed := newBench(), false
	fails := readerFunc(func([]byte) (int, error) {
		if failed {
			return 0, io.EOF
		}
		failed = true
		return 0, errLost
	})
	u := upload("content")
	u.Body = io.MultiReader(strings.NewReader("cont"), fails)
	if _, err := b.Add(t.Context(), broker, u); !errors.Is(err, errLost) || len(b.memory.blobs)+len(b.memory.files) != 0 {
		t.Errorf("got %v, %d blobs and %d files, want %v and nothing stored", err, len(b.memory.blobs),
			len(b.memory.files), errLost)
	}
}

// TestAnUploadThatFailsLeavesNoFile lets uploads of new files fail. If the file cannot be deleted then, the error
// must say so, too. If another request has changed the file, that is no failure.
func TestAnUploadThatFailsLeavesNoFile(t *testing.T) {
	b, away := newBench(), errors.New("away")
	b.memory.step = func(operation string) error {
		return map[string]error{"put": errLost, "delete": away}[operation]
	}
	if _, err := b.Add(t.Context(), broker, upload("content")); !errors.Is(err, errLost) || !errors.Is(err, away) {
		t.Errorf("got %v, want %v and %v", err, errLost, away)
	}
	b = newBench()
	f := b.stored(t, "content")
	must(t, f, errorOf(b.Remove(t.Context(), admin, f.ID, "x")))
	if _, err := b.Add(t.Context(), broker, upload("content")); fault.KindOf(err) != fault.Forbidden || errors.Is(err, ErrStale) {
		t.Errorf("removed bytes: got %v, want a fault of kind Forbidden alone", err)
	}
}

// TestOthersKeepChangingAFile changes a file before each change of the service. The caller must get a conflict.
func TestOthersKeepChangingAFile(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	tries := 0
	b.memory.step = func(operation string) error {
		if operation == "replace" {
			tries++
			f.Revision++
			b.memory.files[f.ID] = f
		}
		return nil
	}
	if err := b.Name(t.Context(), f.ID, false); fault.KindOf(err) != fault.Conflict || tries != maxRetries {
		t.Errorf("got %v after %d tries, want a conflict after %d", err, tries, maxRetries)
	}
}

// TestALargeFile uploads a file that is longer than the beginning from which its type is detected.
func TestALargeFile(t *testing.T) {
	b := newBench()
	b.limits.FileBytes, b.limits.BrokerBytes = 3*headSize, 3*headSize
	text := strings.Repeat("x", 2*headSize+1)
	f, err := b.Add(t.Context(), broker, upload(text))
	b.has(t, must(t, f, err).ID, text)
}

// TestVerified reads files to their end. Only the stored bytes may end without an error.
func TestVerified(t *testing.T) {
	b := newBench()
	f := b.stored(t, "content")
	for _, c := range []struct {
		from io.Reader
		want error
	}{
		{strings.NewReader("content"), nil}, {iotest.DataErrReader(strings.NewReader("content")), nil},
		{iotest.OneByteReader(strings.NewReader("content")), nil}, {strings.NewReader("contents"), ErrSum},
		{strings.NewReader("conten"), ErrSum}, {strings.NewReader(""), ErrSum},
		{io.MultiReader(strings.NewReader("content"), iotest.ErrReader(errLost)), errLost},
	} {
		if text, err := io.ReadAll(Verified(c.from, f)); !errors.Is(err, c.want) || err == nil && string(text) != "content" {
			t.Errorf("got %q and %v, want %v", text, err, c.want)
		}
	}
}

// TestASecondUploadIsRefused repeats an upload with the same content, and with different content. The first content
// must stay.
func TestASecondUploadIsRefused(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
	for _, text := range []string{"content", "other"} {
		_, err := b.Upload(t.Context(), broker, f.ID, upload(text))
		if got := text; err == nil || err.Error() != "url/doc_id: Content already uploaded" {
			t.Errorf("%s: got %v, want that it is there already", got, err)
		}
	}
	b.has(t, f.ID, "content")
}

func errorOf[T any](_ T, err error) error { return err }

// TestUploadsAtOnce starts and ends a second upload during the first one. The bytes of the second upload must
// stay.
func TestUploadsAtOnce(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	second := false
	b.memory.step = func(operation string) error {
		if operation == "replace" && !second {
			second = true
			must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content"))))
		}
		return nil
	}
	expect.FaultOf(t, fault.Forbidden, "")(b.Upload(t.Context(), broker, f.ID, upload("content")))
	b.has(t, f.ID, "content")
	expect.Equal(t, len(b.memory.blobs), 1, "blobs")
}

// TestAFailureAtEachStep makes each operation of an upload fail, before or after it takes effect. Readers must never
// get any bytes other than the uploaded ones. A repeat of the upload must succeed.
func TestAFailureAtEachStep(t *testing.T) {
	broken := errors.New("broken")
	for _, failing := range []string{"get", "put", "replace", "open", "remove"} {
		for _, cause := range []error{broken, errLost} {
			for count := range 4 {
				b := newBench()
				f := b.register(t, "content")
				seen := 0
				b.memory.step = func(operation string) error {
					if operation != failing {
						return nil
					}
					seen++
					if seen == count+1 {
						return cause
					}
					return nil
				}
				_, err := b.Upload(t.Context(), broker, f.ID, upload("content"))
				b.memory.step = func(string) error { return nil }
				if err == nil {
					b.has(t, f.ID, "content")
				}
				_, err = b.Upload(t.Context(), broker, f.ID, upload("content"))
				if err != nil && err.Error() != "url/doc_id: Content already uploaded" {
					t.Errorf("%s %d, repeated: got %v, want success, or that it is there", failing, count, err)
				}
				b.has(t, f.ID, "content")
			}
		}
	}
}

// TestARepeatedChangeIsRecognised has a driver that repeats changes which have already succeeded. The upload
// must succeed nevertheless.
func TestARepeatedChangeIsRecognised(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	b.Service.files = repeating{b.memory}
	got, err := b.Upload(t.Context(), broker, f.ID, upload("content"))
	if must(t, got, err) != b.memory.files[f.ID] {
		t.Errorf("got %+v, want what is stored: %+v", got, b.memory.files[f.ID])
	}
	b.has(t, f.ID, "content")
}

func TestQuotas(t *testing.T) {
	b := newBench()
	for range 3 {
		b.register(t, "content")
	}
	expect.FaultOf(t, fault.Forbidden, "")(b.Register(t.Context(), broker, sum("x")))
	expect.ErrOf(t, nil, "another broker")(b.Register(t.Context(), another, sum("x")))
	b.limits.Waiting = 2 // the operator lowers the limit: waiting files may still be uploaded
	most := upload("content")
	most.Length = b.limits.FileBytes + maxForm
	b.limits.BrokerBytes += maxForm
	expect.ErrOf(t, nil, "the longest form")(b.Add(t.Context(), broker, most))
	b.limits.BrokerBytes += int64(len("content")) - maxForm
	large := strings.Repeat("x", 1000)
	for range 3 {
		must(t, File{}, errorOf(b.Add(t.Context(), broker, upload(large))))
	}
	unread := Upload{Body: iotest.ErrReader(errors.New("it was read")), Length: 1}
	expect.FaultOf(t, fault.Forbidden, "")(b.Add(t.Context(), broker, unread))
}

func TestTitles(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{"акт.pdf", "акт.pdf"}, {`C:\files\a.pdf`, "a.pdf"}, {"../../etc/passwd", "passwd"}, {"..", "file"}, {"", "file"},
		{"a\r\nX: y", "aX: y"}, {"a\u202efdp.exe", "afdp.exe"}, {`a"b'.txt`, `a"b'.txt`}, {"\xff\xfea", "a"}, {"/", "file"},
		{strings.Repeat("ї", 1000), strings.Repeat("ї", 255)},
	} {
		expect.Equal(t, Title(c.sent), c.want, "title of %q", c.sent)
	}
}

// TestADamagedRemovalIsAFault reads texts that are no removal of the file, and a text that cannot be read. An
// administrator must learn what to do, and the removals beside them must be read. The reading ends after ten faults.
func TestADamagedRemovalIsAFault(t *testing.T) {
	id, other, sound := strings.Repeat("1", 32), strings.Repeat("2", 32), `"State":"removed","Reason":"x"}`
	for _, text := range []string{
		`{"ID":"` + other + `","State":"removed"}`, `{"ID":"` + id + `","State":"stored"}`,
		`{"ID":"` + id + `","State":"removed"} more`, `{"ID":"` + id + `","State":"removed","Size":"x"}`, "", "unread",
	} {
		found, err := ReadRemovals([]string{id, other}, func(of string) ([]byte, error) {
			switch {
			case of == other:
				return []byte(`{"ID":"` + other + `",` + sound), nil
			case text == "unread":
				return nil, errLost
			}
			return []byte(text), nil
		})
		if err == nil || errors.Is(err, errLost) != (text == "unread") || len(found) != 1 || found[0].ID != other {
			t.Errorf("%s: got %+v and %v, want the other removal and an error", text, found, err)
		}
	}
	reads := 0
	found, err := ReadRemovals(slices.Repeat([]string{id}, 2*maxFailed), func(string) ([]byte, error) {
		reads++
		return nil, errLost
	})
	if len(found) != 0 || err == nil || reads != maxFailed {
		t.Errorf("got %d removals and %v after %d tries, want an error after %d", len(found), err, reads, maxFailed)
	}
}

// TestNoRoom has errors of a disk and of other causes. Only a full disk and a full quota are a full store.
func TestNoRoom(t *testing.T) {
	for _, c := range []struct {
		err  error
		full bool
	}{{syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EIO, false}, {nil, false}} {
		got := NoRoom(c.err)
		if errors.Is(got, ErrFull) != c.full || !errors.Is(got, c.err) || !c.full && got != c.err {
			t.Errorf("%v: got %v, want the error of a full store: %t", c.err, got, c.full)
		}
	}
}

func TestClaims(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	claim := Claim{f.MD5, broker.Broker, false}
	for _, c := range []struct {
		name, id string
		claim    Claim
		want     fault.Kind
	}{
		{"its broker", f.ID, claim, -1},
		{"another with the signature", f.ID, Claim{f.MD5, another.Broker, true}, -1},
		{"another without the signature", f.ID, Claim{f.MD5, another.Broker, false}, fault.Forbidden},
		{"another hash", f.ID, Claim{sum("x"), broker.Broker, true}, fault.Invalid},
		{"no such file", strings.Repeat("0", 32), Claim{f.MD5, broker.Broker, true}, fault.NotFound},
		{"no id", "x", Claim{f.MD5, broker.Broker, true}, fault.NotFound},
	} {
		got, err := b.Claim(t.Context(), c.id, c.claim)
		if kind := fault.KindOf(err); (err == nil) != (c.want == -1) || err != nil && kind != c.want {
			t.Errorf("%s: got %v, want kind %d", c.name, err, c.want)
		}
		expect.ErrorIf(t, err == nil && got != f, "%s: got %+v, want %+v", c.name, got, f)
	}
}

// TestAClaimIsStoredOnceAMinute claims a file again and again. The field Touched must change when it is a minute
// old. It must not change once a document has named the file.
func TestAClaimIsStoredOnceAMinute(t *testing.T) {
	b := newBench()
	f := b.register(t, "content")
	for _, c := range []struct {
		at      time.Duration
		named   bool
		touched time.Duration
	}{
		{0, false, 0}, {fresh - time.Millisecond, false, 0}, {fresh, false, fresh}, {2 * fresh, false, 2 * fresh},
		{5 * fresh, true, 2 * fresh}, {0, false, 0}, // the last one after the clock was set back
	} {
		b.clock = start.Add(c.at)
		before := b.memory.files[f.ID]
		before.Named = c.named
		b.memory.files[f.ID] = before
		got, err := b.Claim(t.Context(), f.ID, Claim{f.MD5, broker.Broker, false})
		want := before
		if want.Touched = start.Add(c.touched); !want.Touched.Equal(before.Touched) {
			want.Revision++
		}
		if must(t, got, err) != want || b.memory.files[f.ID] != want {
			t.Errorf("at %v: got %+v, stored %+v, want %+v", c.at, got, b.memory.files[f.ID], want)
		}
	}
}
