package picture

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // draws the first frame
	"image/jpeg"
	_ "image/png"
	"io"
	"runtime"

	scaling "golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"asset-registry/shared/filelink"
)

// draw returns the small and the large version of a picture. Each is a JPEG without the other data of the
// picture's file.
func draw(in io.Reader) (small, large []byte, err error) {
	var head bytes.Buffer
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
