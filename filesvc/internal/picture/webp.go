package picture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
)

// Forms of the files that consist of chunks.
const (
	pngHead    = "\x89PNG\r\n\x1a\n"
	webHead    = 12 // bytes: RIFF, a length, WEBP
	chunkHead  = 8  // bytes: a name and a length
	frameHead  = 16 // bytes before the chunks of a frame
	canvasSize = 10 // bytes of a chunk VP8X
	isMoving   = 0x02
	hasAlpha   = 0x10
)

// firstFrame returns the first frame of an animated WebP as a WebP of its own, and other files as they are. The WebP
// has a chunk VP8X with the size of the frame, which the decoder compares with the picture before it decodes.
func firstFrame(from io.Reader) (io.Reader, error) {
	in := bufio.NewReader(from)
	head, err := in.Peek(webHead + chunkHead + 1)
	if err != nil || !isWebP(head) || string(head[webHead:][:4]) != "VP8X" || head[len(head)-1]&isMoving == 0 {
		return in, nil // a file that ends so early is no picture, as the decoder says
	}
	name, size, err := "", int64(webHead), error(nil)
	for head = make([]byte, chunkHead); err == nil && name != "ANMF"; {
		if _, err = io.CopyN(io.Discard, in, size); err == nil {
			_, err = io.ReadFull(in, head)
		}
		name, size = string(head[:4]), even(binary.LittleEndian.Uint32(head[4:]))
	}
	frame := make([]byte, frameHead)
	if err == nil {
		_, err = io.ReadFull(in, frame)
	}
	if size -= frameHead; err != nil || size < 0 {
		return nil, io.ErrUnexpectedEOF
	}
	canvas := make([]byte, canvasSize)
	if begin, _ := in.Peek(4); string(begin) == "ALPH" {
		canvas[0] = hasAlpha
	}
	copy(canvas[4:], frame[6:12]) // width and height
	var still bytes.Buffer
	still.WriteString("RIFF")
	still.Write(binary.LittleEndian.AppendUint32(nil, uint32(4+chunkHead+canvasSize+size)))
	still.WriteString("WEBPVP8X\x0a\x00\x00\x00")
	still.Write(canvas)
	return io.MultiReader(&still, io.LimitReader(in, size)), nil
}

func isWebP(head []byte) bool {
	return len(head) >= webHead && string(head[:4]) == "RIFF" && string(head[8:webHead]) == "WEBP"
}

// even returns a size with the byte that follows an odd number of bytes.
func even(size uint32) int64 { return int64(size) + int64(size%2) }

// maxExif is the maximum number of bytes of Exif data that are read.
const maxExif = 64 << 10

// chunks finds the Exif data of a PNG or a WebP, whose bytes are written to it. They may come behind the picture.
type chunks struct {
	rest  []byte // bytes that are not read yet
	skip  int64  // how many bytes are skipped before the next chunk
	isPNG bool
	begun bool
	done  bool // nothing else is needed, or the file is of another form
	exif  []byte
}

func (c *chunks) Write(p []byte) (int, error) {
	if !c.done {
		c.rest = append(c.rest, p...)
		for !c.done && c.read() {
		}
	}
	return len(p), nil
}

// read reads the next part of what was written. It returns false if more bytes are needed.
func (c *chunks) read() bool {
	n := min(c.skip, int64(len(c.rest)))
	c.rest, c.skip = c.rest[n:], c.skip-n
	if c.skip > 0 || len(c.rest) < chunkHead || !c.begun && len(c.rest) < webHead {
		return false
	}
	if !c.begun {
		c.begun, c.isPNG, c.skip = true, string(c.rest[:len(pngHead)]) == pngHead, webHead
		if c.isPNG {
			c.skip = int64(len(pngHead))
		}
		c.done = !c.isPNG && !isWebP(c.rest)
		return true
	}
	name, size := string(c.rest[:4]), even(binary.LittleEndian.Uint32(c.rest[4:]))
	if c.isPNG {
		name, size = string(c.rest[4:chunkHead]), int64(binary.BigEndian.Uint32(c.rest))+4 // the checksum follows
	}
	isExif := name == "eXIf" || name == "EXIF"
	switch {
	case !isExif || size > maxExif:
		c.skip = chunkHead + size
	case int64(len(c.rest)) < chunkHead+size:
		return false
	default:
		c.exif, c.done = bytes.TrimPrefix(bytes.Clone(c.rest[chunkHead:chunkHead+size]), []byte("Exif\x00\x00")), true
		c.rest = nil
	}
	return true
}
