package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/flate"

	"asset-registry/assetsvc/internal/asset"
)

// The first byte of a kept change or asset. It is the first byte of plain JSON, or a mark
// before compressed JSON (RFC 1951). Creations are usually compressed, because they
// have the whole asset.
const (
	plain      = '{'
	compressed = 'z'
)

// small is the most bytes of a text that is not compressed.
const small = 512

// level is about as good as the standard library's default for an asset of 3 KB, at half
// its time.
const level = 6

// packer describes changes. It reuses the memory of its compressors.
type packer struct {
	public shownTo
	idle   sync.Pool
}

func newPacker(hidden []asset.Group) *packer { return &packer{public: publicView(hidden)} }

// pack compresses a text, unless it is small.
func (p *packer) pack(text []byte) ([]byte, error) {
	if len(text) <= small {
		return text, nil
	}
	return p.deflate(text)
}

func (p *packer) deflate(text []byte) ([]byte, error) {
	packed := bytes.NewBuffer([]byte{compressed})
	w, ok := p.idle.Get().(*flate.Writer)
	if ok {
		w.Reset(packed)
	} else {
		var err error
		if w, err = flate.NewWriter(packed, level); err != nil {
			return nil, fmt.Errorf("compress change: %w", err)
		}
	}
	defer p.idle.Put(w)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress change: %w", err)
	}
	return packed.Bytes(), nil
}

// inflaters are idle readers of compressed texts. A new one has 40 KB.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// errUnknownPack is returned for a text that this version has not packed.
var errUnknownPack = errors.New("the record has an unknown encoding")

// unpack calls read with the text that was packed. Read need not read all of it.
func unpack(kept []byte, read func(io.Reader) error) error {
	switch {
	case len(kept) > 0 && kept[0] == plain:
		return read(bytes.NewReader(kept))
	case len(kept) > 0 && kept[0] == compressed:
		r := inflaters.Get().(io.Reader)
		defer inflaters.Put(r)
		if err := r.(flate.Resetter).Reset(bytes.NewReader(kept[1:]), nil); err != nil {
			return err
		}
		return read(r)
	default:
		return errUnknownPack
	}
}

func inflate(kept []byte) ([]byte, error) { return inflateUpto(kept, AnySize) }

// inflateUpto is inflate for a text of at most most bytes. For a longer one it returns
// ErrLarge. The text may be kept itself.
func inflateUpto(kept []byte, most int) (text []byte, err error) {
	if len(kept) > 0 && kept[0] == plain {
		text = kept
	} else {
		err = unpack(kept, func(r io.Reader) (err error) {
			text, err = io.ReadAll(io.LimitReader(r, min(int64(most), math.MaxInt64-1)+1))
			return err
		})
	}
	if err == nil && len(text) > most {
		return nil, ErrLarge
	}
	return text, err
}
