package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"os"
	"slices"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/testing/expect"
)

// TestPicturesOfOtherPrograms draws files that libwebp's tools and Pillow 9.4 have made: img2webp with -lossy and
// -lossless, gif2webp, webpmux with -set exif and with -frame, and Pillow's save with exif and with save_all. The first
// frame has 60 x 30 pixels: its top left quarter is red, the rest is blue. Turned ones have the orientation 6.
func TestPicturesOfOtherPrograms(t *testing.T) {
	for _, name := range []string{
		"gif2webp-moving.webp", "img2webp-moving-lossless.webp", "img2webp-moving-lossy.webp", "pillow-moving.png",
		"pillow-moving.webp", "pillow-turned.png", "pillow-turned.webp", "webpmux-moving-alpha-turned.webp",
		"webpmux-turned.webp",
	} {
		text := expect.Get(os.ReadFile("testdata/" + name))(t)
		want := image.Pt(60, 30)
		if strings.Contains(name, "turned") {
			want = image.Pt(30, 60)
		}
		isUpright(t, name, text, want)
	}
}

// isUpright draws a picture. It must have the size, and its red quarter at the top, on the right side if it is high.
func isUpright(t *testing.T, name string, text []byte, want image.Point) {
	t.Helper()
	_, large, err := draw(bytes.NewReader(text))
	expect.OK(t, err)
	p := expect.Get(jpeg.Decode(bytes.NewReader(large)))(t)
	expect.Equal(t, p.Bounds().Size(), want, "%s: the size", name)
	for i, at := range []image.Point{{want.X / 4, want.Y / 4}, {want.X * 3 / 4, want.Y / 4}, {want.X / 4, want.Y * 3 / 4}} {
		red, _, _, _ := p.At(at.X, at.Y).RGBA()
		isRed := i == 0 && want.X > want.Y || i == 1 && want.X < want.Y
		expect.Equal(t, red > 0x8000, isRed, "%s: red at %v", name, at)
	}
}

// TestExifBehindThePicture has a PNG whose Exif data come after the pixels, and one with too many to read.
func TestExifBehindThePicture(t *testing.T) {
	tiff := withExif([]byte("\xff\xd8"), 6)[12:]
	plain := asPNG(t, photo(60, 30))
	end := len(plain) - len(chunk("IEND", ""))
	with := func(exif string) []byte {
		return slices.Concat(plain[:end], []byte(chunk("tEXt", "a\x00b")+chunk("eXIf", exif)), plain[end:])
	}
	isUpright(t, "Exif behind", with(string(tiff)), image.Pt(30, 60))
	isUpright(t, "64 KiB", with(string(tiff)+strings.Repeat("x", maxExif)), image.Pt(60, 30))
	isUpright(t, "an Exif that ends", with(string(tiff[:9])), image.Pt(60, 30))
}

// moving returns an animated WebP with one frame of the given size less one, whose chunk is the last argument.
func moving(width, height uint32, frame string) []byte {
	size := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)[:3]) }
	long := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	body := "WEBPVP8X" + long(canvasSize) + "\x02\x00\x00\x00" + strings.Repeat("\x00", 6) + "ANIM" + long(6) + "123456" +
		"ANMF" + long(frameHead+len(frame)) + strings.Repeat("\x00", 6) + size(width) + size(height) + "\x64\x00\x00\x00" + frame
	return []byte("RIFF" + long(len(body)) + body)
}

// TestHostileAnimations has frames that are larger than they say, too large, cut off or no picture. No child may die of
// them: each must be refused before it is decoded.
func TestHostileAnimations(t *testing.T) {
	huge := "VP8L\x40\x00\x00\x00\x2f\xff\xff\xff\x0f" + strings.Repeat("\x00", 0x40-5) // 16,384 x 16,384
	whole := expect.Get(os.ReadFile("testdata/img2webp-moving-lossy.webp"))(t)
	cases := map[string][]byte{
		"a frame that hides its size": moving(0, 0, huge), "a large frame": moving(16_383, 16_383, huge),
		"no picture": moving(9, 9, ""), "an unknown picture": moving(9, 9, "VP9 \x00\x00\x00\x00"),
		"a canvas without frames": moving(9, 9, "")[:44], "alpha without a picture": moving(9, 9, "ALPH\x01\x00\x00\x00\x00\x00"),
		"a frame in a frame": moving(9, 9, string(moving(9, 9, huge)[44:])),
		"a long chunk":       append(moving(9, 9, "")[:44], "ABCD\xff\xff\xff\xff"...),
	}
	for at := 20; at < len(whole)/2; at += 7 {
		if _, _, err := draw(bytes.NewReader(whole[:at])); err == nil {
			t.Errorf("the first %d bytes: got a picture, want none", at)
		}
	}
	for name, text := range cases {
		_, err := drawer(Argument).Draw(t.Context(), open(text))
		expect.ErrOf(t, file.ErrNoPicture, "%s", name)(nil, err)
		if err != nil && strings.Contains(err.Error(), "exit status 2") {
			t.Errorf("%s: got a child that crashed, want a refusal", name)
		}
	}
}

// FuzzChunks reads chunks of random bytes, in parts of random length. Both must find the same Exif data.
func FuzzChunks(f *testing.F) {
	for _, name := range []string{"pillow-turned.png", "pillow-turned.webp", "webpmux-moving-alpha-turned.webp"} {
		text := expect.Get(os.ReadFile("testdata/" + name))(f)
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, part int) {
		var whole, parts chunks
		_, _ = whole.Write(text)
		for p := range slices.Chunk(text, max(1, part)) {
			_, _ = parts.Write(p)
		}
		expect.Equal(t, string(parts.exif), string(whole.exif), "")
		expect.ErrorIf(t, len(whole.exif) > maxExif, "got %d bytes, want %d or fewer", len(whole.exif), maxExif)
	})
}
