package picture

import (
	"bytes"
	"encoding/binary"
	"image"
)

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
