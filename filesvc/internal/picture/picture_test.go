package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/testing/expect"
)

// Arguments with which this program runs as a child. Each child limits itself as the function Child does.
const (
	sleeps = "sleep"
	eats   = "eat"
	spins  = "spin"
	floods = "flood"
	tells  = "tell"
	hit    = "hit-by-" // and the number of a signal, which the child sends to itself
	fatal  = "fatal"
)

func TestMain(m *testing.M) {
	if len(os.Args) != 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case Argument:
		os.Exit(Child(os.Stdin, os.Stdout))
	case sleeps:
		time.Sleep(time.Hour)
	case eats:
		if err := bound(work); err != nil {
			os.Exit(unfit)
		}
		for all := [][]byte{}; ; {
			all = append(all, slices.Repeat([]byte{1}, 1<<20))
		}
	case spins:
		if err := bound(time.Second); err != nil {
			os.Exit(unfit)
		}
		for time.Now().Year() > 0 {
		}
	case tells: // answers with its environment, as if it were a picture
		os.Stdout.WriteString("\x00\x00\x00\x00" + strings.Join(os.Environ(), "\n"))
		os.Exit(0)
	case fatal: // ends as the runtime of Go does if the system permits no more threads
		os.Stderr.WriteString("runtime: failed to create new OS thread (have 4 already; errno=11)\nfatal error: newosproc\n")
		os.Exit(2)
	case floods:
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				os.Exit(0)
			}
		}
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(os.Args[1], hit)); err == nil {
		if err := errors.Join(bound(work), syscall.Kill(os.Getpid(), syscall.Signal(number))); err != nil {
			os.Exit(unfit)
		}
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func drawer(argument string) Drawer { return Drawer{Command: []string{os.Args[0], argument}} }

type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

func open(text []byte) file.Blob { return blob{bytes.NewReader(text)} }

// photo returns a picture whose top left quarter is red. The rest is blue.
func photo(width, height int) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{B: 255, A: 255}
			if x < width/2 && y < height/2 {
				c = color.RGBA{R: 255, A: 255}
			}
			p.SetRGBA(x, y, c)
		}
	}
	return p
}

func asJPEG(t *testing.T, p image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.OK(t, jpeg.Encode(&out, p, nil))
	return out.Bytes()
}

func asPNG(t *testing.T, p image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.OK(t, png.Encode(&out, p))
	return out.Bytes()
}

// withExif adds Exif data to a JPEG: an orientation, and the place where the photo was taken.
func withExif(jpeg []byte, orientation byte) []byte {
	tiff := []byte("MM\x00*\x00\x00\x00\x08\x00\x02" +
		"\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(orientation)) + "\x00\x00" +
		"\x88\x25\x00\x04\x00\x00\x00\x01\x00\x00\x00\x26" + "\x00\x00\x00\x00" + "GPS 50.4501 30.5234")
	exif := append([]byte("Exif\x00\x00"), tiff...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return slices.Concat(jpeg[:2], segment, exif, jpeg[2:])
}

// size returns the size of a JPEG. It fails if the JPEG has other data than the picture.
func size(t *testing.T, text []byte) image.Point {
	t.Helper()
	p := expect.Get(jpeg.Decode(bytes.NewReader(text)))(t)
	if bytes.Contains(text, []byte("Exif")) || bytes.Contains(text, []byte("GPS")) || bytes.Contains(text, []byte{0xff, 0xe1}) {
		t.Error("the picture has Exif data")
	}
	return p.Bounds().Size()
}

const webPicture = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA" // one pixel, lossy

// TestPicturesOfAllFormats draws one picture of each format in a child process. The small versions must have the
// expected sizes.
func TestPicturesOfAllFormats(t *testing.T) {
	var moving bytes.Buffer
	frame := image.NewPaletted(image.Rect(0, 0, 640, 480), palette.Plan9)
	expect.OK(t, gif.EncodeAll(&moving, &gif.GIF{Image: slices.Repeat([]*image.Paletted{frame}, 3), Delay: []int{1, 1,
		1}}))
	web := expect.Get(base64.StdEncoding.DecodeString(webPicture))(t)
	for _, c := range []struct {
		name         string
		from         []byte
		small, large image.Point
	}{
		{"a photo", asJPEG(t, photo(1600, 1200)), image.Pt(320, 240), image.Pt(1200, 900)},
		{"an upright photo", asJPEG(t, photo(960, 1280)), image.Pt(240, 320), image.Pt(900, 1200)},
		{"a drawing", asPNG(t, photo(1300, 650)), image.Pt(320, 160), image.Pt(1200, 600)},
		{"a small drawing", asPNG(t, photo(100, 50)), image.Pt(100, 50), image.Pt(100, 50)},
		{"a line", asPNG(t, photo(9000, 1)), image.Pt(320, 1), image.Pt(1200, 1)},
		{"a film", moving.Bytes(), image.Pt(320, 240), image.Pt(640, 480)},
		{"a WebP", web, image.Pt(1, 1), image.Pt(1, 1)},
		{"a turned photo", withExif(asJPEG(t, photo(1400, 700)), 6), image.Pt(160, 320), image.Pt(600, 1200)},
	} {
		drawn, err := drawer(Argument).Draw(t.Context(), open(c.from))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if small, large := size(t, drawn.Small), size(t, drawn.Large); small != c.small || large != c.large {
			t.Errorf("%s: got %v and %v, want %v and %v", c.name, small, large, c.small, c.large)
		}
	}
}

// TestPicturesStandUpright checks where the red quarter of a photo is, for each orientation.
func TestPicturesStandUpright(t *testing.T) {
	plain := asJPEG(t, photo(400, 200))
	for orientation, want := range []image.Point{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}} {
		if orientation == 0 {
			continue
		}
		_, large, err := draw(bytes.NewReader(withExif(plain, byte(orientation))))
		expect.OK(t, err)
		p := expect.Get(jpeg.Decode(bytes.NewReader(large)))(t)
		for _, at := range []image.Point{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			has := p.Bounds().Size()
			red, _, _, _ := p.At(has.X/4+at.X*has.X/2, has.Y/4+at.Y*has.Y/2).RGBA()
			if isRed := red > 0x8000; isRed != (at == want) || has.X > has.Y != (orientation < 5) {
				t.Errorf("orientation %d: got red %t at %v of %v, want it at %v", orientation, isRed, at, has, want)
			}
		}
	}
}

func TestTransparentPicturesAreOnWhite(t *testing.T) {
	_, large, err := draw(bytes.NewReader(asPNG(t, image.NewNRGBA64(image.Rect(0, 0, 50, 50)))))
	expect.OK(t, err)
	p := expect.Get(jpeg.Decode(bytes.NewReader(large)))(t)
	if r, g, b, _ := p.At(25, 25).RGBA(); min(r, g, b) < 0xf000 {
		t.Errorf("got %d, %d, %d, want white", r, g, b)
	}
}

// chunk returns a chunk of a PNG.
func chunk(kind, text string) string {
	body := kind + text
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + body +
		string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body))))
}

// giant returns a PNG of some kilobytes whose header says that it has the given width and height. Its data have
// only the given number of rows.
func giant(width, height uint32, rows int) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	for range rows {
		_, _ = w.Write(make([]byte, 1+8*int(width))) // a buffer never fails
	}
	_ = w.Close()
	return []byte("\x89PNG\r\n\x1a\n" + chunk("IHDR", string(head)+"\x10\x06\x00\x00\x00") + chunk("IDAT", packed.String()) +
		chunk("IEND", ""))
}

// liar returns a WebP whose header says one pixel, but whose frame has 16,384 x 16,384 pixels.
func liar() []byte {
	canvas := "VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	frame := "VP8L\x40\x00\x00\x00\x2f\xff\xff\xff\x0f" + strings.Repeat("\x00", 0x40-5)
	size := binary.LittleEndian.AppendUint32(nil, uint32(4+len(canvas)+len(frame)))
	return []byte("RIFF" + string(size) + "WEBP" + canvas + frame)
}

// TestHostilePictures draws damaged pictures, and pictures that would cost a decoder much memory or time. Each
// must be refused with ErrNoPicture.
func TestHostilePictures(t *testing.T) {
	whole := asJPEG(t, photo(800, 600))
	drawing := asPNG(t, photo(800, 600))
	gifOf := func(width, height uint16) []byte {
		size := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, width), height)
		return slices.Concat([]byte("GIF89a"), size, []byte{0x80, 0, 0, 0, 0, 0, 255, 255, 255, ','}, make([]byte, 4), size,
			[]byte{0, 2, 1, 0x44, 0, ';'})
	}
	for name, text := range map[string][]byte{
		"60,000 x 60,000 pixels":         giant(60_000, 60_000, 1),
		"a GIF of 65,535 x 65,535":       gifOf(65_535, 65_535),
		"a GIF that ends":                gifOf(4_000, 4_000),
		"16 million and some":            giant(4_001, 4_000, 1),
		"a PNG that lacks rows":          giant(4_000, 4_000, 10),
		"a WebP that hides its size":     liar(),
		"half a photo's header":          whole[:20],
		"half a drawing":                 drawing[:len(drawing)/2],
		"a text":                         []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"),
		"nothing":                        {},
		"no pixel":                       giant(0, 5, 0),
		"a photo with a long Exif block": append([]byte{0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff}, make([]byte, 9<<20)...),
	} {
		expect.ErrOf(t, file.ErrNoPicture, "%s", name)(drawer(Argument).Draw(t.Context(), open(text)))
	}
}

// TestDamagedExif reads the orientation from heads of files that are cut off or changed. The orientation must
// always be from 1 to 8.
func TestDamagedExif(t *testing.T) {
	head := withExif(asJPEG(t, photo(10, 10)), 6)[:80]
	for end := range head {
		for _, at := range []int{12, 16, 20, 21, 25} {
			broken := slices.Clone(head[:end])
			if at < end {
				broken[at] = 0xff
			}
			if got := orientation(broken); got < 1 || got > 8 {
				t.Fatalf("the first %d bytes: got %d", end, got)
			}
		}
	}
	expect.Equal(t, orientation(head), 6, "")
}

// TestAChildIsBounded starts children that write, allocate or compute without end. The parent must get
// ErrNoPicture, and no child may use much more than maxMemory.
func TestAChildIsBounded(t *testing.T) {
	bounded := []string{floods, eats, spins}
	if raced { // with the race detector, only the answer of a child is limited
		bounded = bounded[:1]
	}
	for _, argument := range bounded {
		expect.ErrOf(t, file.ErrNoPicture, "%s", argument)(drawer(argument).Draw(t.Context(), open(nil)))
	}
	var used syscall.Rusage
	expect.OK(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	if got := used.Maxrss << 10; !raced && got > maxMemory+maxMemory/8 { // maxMemory does not include code
		t.Errorf("got a child of %d bytes, want about %d at most", got, maxMemory)
	}
}

func TestAFailureIsNoVerdict(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	away := struct {
		io.Reader
		io.Seeker
		io.Closer
	}{Reader: iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(asPNG(t, photo(10, 10)))))}
	if _, err := drawer(Argument).Draw(t.Context(), away); err == nil || errors.Is(err, file.ErrNoPicture) {
		t.Errorf("bytes that cannot be read: got %v, want an error after which it is tried again", err)
	}
	for _, c := range []struct {
		ctx context.Context
		d   Drawer
	}{
		{ended, drawer(sleeps)},
		{t.Context(), Drawer{Command: []string{"/there/is/no/such/program"}}},
		{t.Context(), Drawer{Command: []string{os.Args[0], sleeps}, Within: time.Second}},
	} {
		if _, err := c.d.Draw(c.ctx, open(nil)); err == nil || errors.Is(err, file.ErrNoPicture) {
			t.Errorf("got %v, want an error after which it is tried again", err)
		}
	}
}

// TestAChildHasNoSecretsOfItsParent gives the parent a secret in its environment.
func TestAChildHasNoSecretsOfItsParent(t *testing.T) {
	t.Setenv("PICTURE_TEST", "a secret")
	told := expect.Get(drawer(tells).Draw(t.Context(), open(nil)))(t)
	if got := string(told.Large); !strings.Contains(got, "GOMAXPROCS=1") || strings.Contains(got, "a secret") {
		t.Errorf("got %d bytes of environment with the secret: %t; want it without", len(got), strings.Contains(got, "a secret"))
	}
}

// TestTheParentKeepsItsMemory draws the largest picture that is allowed. The parent may allocate only twice the size of
// the largest answer.
func TestTheParentKeepsItsMemory(t *testing.T) {
	side := uint32(4_000)
	if raced { // with the race detector, the child would need a minute for the largest picture
		side = 1_500
	}
	text := giant(side, side, int(side))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	drawn, err := drawer(Argument).Draw(t.Context(), open(text))
	runtime.ReadMemStats(&after)
	if err != nil || size(t, drawn.Large) != image.Pt(1200, 1200) {
		t.Fatalf("16 bits a colour, 16 million pixels: got %v, want a picture", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 2*maxDrawn {
		t.Errorf("got %d bytes that the parent took, want %d or fewer", took, 2*maxDrawn)
	}
}

// FuzzOrientation reads the orientation from random bytes. The orientation must always be from 1 to 8.
func FuzzOrientation(f *testing.F) {
	for _, seed := range []string{"", "\xff\xd8", "\xff\xd8\xff\xe1\x00\x01", "\xff\xd8\xff\xda\x00\x02"} {
		f.Add([]byte(seed))
	}
	for _, order := range []string{"MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12", "II*\x00\xff\xff\xff\xff"} {
		f.Add(append([]byte("\xff\xd8\xff\xe1\x00\x22Exif\x00\x00"), order+strings.Repeat("\x00", 20)...))
	}
	f.Add(withExif([]byte("\xff\xd8"), 6))
	f.Fuzz(func(t *testing.T, head []byte) {
		if got := orientation(head); got < upright || got > 8 {
			t.Errorf("got the orientation %d, want 1 to 8", got)
		}
	})
}
