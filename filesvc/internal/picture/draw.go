package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif" // draws the first frame
	"image/jpeg"
	_ "image/png"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	scaling "golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"asset-registry/shared/filelink"
)

// draw returns the small and the large version of a picture. Each is a JPEG without the other data of the
// picture's file.
func draw(in io.Reader) (small, large []byte, err error) {
	var head bytes.Buffer
	var found chunks
	all := io.TeeReader(in, &found)
	in, err = firstFrame(all)
	if err != nil {
		return nil, nil, err
	}
	size, _, err := image.DecodeConfig(io.TeeReader(io.LimitReader(in, maxHead), &head))
	if err != nil {
		return nil, nil, err
	}
	if err := checkSize(size.Width, size.Height); err != nil {
		return nil, nil, err
	}
	turned := orientation(head.Bytes())
	whole, err := decode(io.MultiReader(&head, in))
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(io.Discard, all); err != nil { // Exif data may come behind the picture
		return nil, nil, err
	}
	if found.exif != nil {
		turned = orientationIn(found.exif)
	}
	runtime.GC() // frees the memory of the whole picture, because the scaling would not fit beside it
	second := turn(scale(whole, filelink.LargePicture), turned)
	first := scale(second, filelink.SmallPicture)
	if small, err = encode(first); err != nil {
		return nil, nil, err
	}
	large, err = encode(second)
	return small, large, err
}

func checkSize(width, height int) error {
	if width < 1 || height < 1 || width > maxPixels || height > maxPixels || width*height > maxPixels {
		return fmt.Errorf("a picture of %d x %d pixels is not drawn", width, height)
	}
	return nil
}

// decode returns a picture that is shrunk: it is at most about twice as large as the large version. So the memory
// of the whole picture can be freed.
func decode(in io.Reader) (*image.RGBA, error) {
	whole, _, err := image.Decode(in)
	if err != nil {
		return nil, err
	}
	if err := checkSize(whole.Bounds().Dx(), whole.Bounds().Dy()); err != nil { // a WebP may be larger than it claims
		return nil, err
	}
	return shrink(whole, max(1, longest(whole.Bounds())/filelink.LargePicture)), nil
}

func longest(r image.Rectangle) int { return max(r.Dx(), r.Dy()) }

// shrink returns a picture on a white background. Each pixel of the result is the mean of a square of pixels, whose
// sides have the given length.
func shrink(whole image.Image, by int) *image.RGBA {
	from := whole.Bounds()
	acrossBy, downBy := min(by, from.Dx()), min(by, from.Dy())
	to := image.NewRGBA(image.Rect(0, 0, from.Dx()/acrossBy, from.Dy()/downBy))
	strip := image.NewRGBA(image.Rect(0, 0, from.Dx(), downBy))
	for y := range to.Rect.Dy() {
		scaling.Draw(strip, strip.Rect, image.White, image.Point{}, scaling.Src)
		scaling.Draw(strip, strip.Rect, whole, image.Pt(from.Min.X, from.Min.Y+y*downBy), scaling.Over)
		for x := range to.Rect.Dx() {
			var sum [4]int
			for row := range downBy {
				at := strip.PixOffset(x*acrossBy, row)
				for i, value := range strip.Pix[at : at+4*acrossBy] {
					sum[i%4] += int(value)
				}
			}
			for i, value := range sum {
				to.Pix[to.PixOffset(x, y)+i] = uint8(value / (acrossBy * downBy))
			}
		}
	}
	return to
}

// scale returns a picture whose longer side has the given number of pixels. A picture that is smaller is
// returned unchanged.
func scale(from *image.RGBA, side int) *image.RGBA {
	has := longest(from.Rect)
	if has <= side {
		return from
	}
	to := image.NewRGBA(image.Rect(0, 0, max(1, from.Rect.Dx()*side/has), max(1, from.Rect.Dy()*side/has)))
	scaling.CatmullRom.Scale(to, to.Rect, from, from.Rect, scaling.Src, nil)
	return to
}

func encode(picture image.Image) ([]byte, error) {
	var out bytes.Buffer
	err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}

// bound limits the memory of this process, and its processor time. At the end of that time the process refuses its
// picture. If it does not even do that, the system kills it a little later.
func bound(work time.Duration) error {
	if raced {
		return nil
	}
	// The garbage collector keeps the heap below this limit. So memory that is no longer needed cannot make the
	// process exceed maxMemory.
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	late := make(chan os.Signal, 1)
	signal.Notify(late, syscall.SIGXCPU)
	go func() { // ends with the process
		<-late
		os.Exit(refused)
	}()
	seconds := uint64(work.Seconds())
	for kind, most := range map[int]syscall.Rlimit{
		syscall.RLIMIT_DATA: {Cur: maxMemory, Max: maxMemory}, syscall.RLIMIT_CPU: {Cur: seconds, Max: seconds + grace},
	} {
		if err := syscall.Setrlimit(kind, &most); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	// If the whole machine is short of memory, the system kills this process first. Some systems do not have this
	// file, so an error does not matter.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// upright is the orientation of a picture that need not be turned (Exif 2.3, tag 0x0112).
const upright = 1

// orientation returns how the picture of a JPEG is turned, from 1 to 8, according to the head of its file. It
// returns upright for data that it does not understand, and for other formats.
func orientation(head []byte) int {
	const start, exif, scan = 0xd8, 0xe1, 0xda
	if len(head) < 2 || head[0] != 0xff || head[1] != start {
		return upright
	}
	for rest := head[2:]; len(rest) >= 4 && rest[0] == 0xff && rest[1] != scan; {
		length := int(binary.BigEndian.Uint16(rest[2:]))
		if length < 2 || len(rest) < 2+length {
			return upright
		}
		if tiff, isExif := bytes.CutPrefix(rest[4:2+length], []byte("Exif\x00\x00")); rest[1] == exif && isExif {
			return orientationIn(tiff)
		}
		rest = rest[2+length:]
	}
	return upright
}

// orientationIn returns the orientation from the first directory of TIFF data.
func orientationIn(tiff []byte) int {
	const header, entry, tag = 8, 12, 0x0112
	if len(tiff) < header {
		return upright
	}
	order := binary.ByteOrder(binary.BigEndian)
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return upright
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entry {
			return upright
		}
		if value := int(order.Uint16(entries[8:])); order.Uint16(entries) == tag && value >= upright && value <= 8 {
			return value
		}
		entries = entries[entry:]
	}
	return upright
}

// turn returns a picture of the given orientation, turned upright.
func turn(from *image.RGBA, orientation int) *image.RGBA {
	if orientation == upright {
		return from
	}
	right, bottom := from.Rect.Dx()-1, from.Rect.Dy()-1
	to := image.NewRGBA(image.Rect(0, 0, right+1, bottom+1))
	if orientation > 4 { // the picture lies on its side
		to = image.NewRGBA(image.Rect(0, 0, bottom+1, right+1))
	}
	for y := range bottom + 1 {
		for x := range right + 1 {
			at := [...]image.Point{
				2: {right - x, y}, 3: {right - x, bottom - y}, 4: {x, bottom - y},
				5: {y, x}, 6: {bottom - y, x}, 7: {bottom - y, right - x}, 8: {y, right - x},
			}[orientation]
			to.SetRGBA(at.X, at.Y, from.RGBAAt(x, y))
		}
	}
	return to
}
