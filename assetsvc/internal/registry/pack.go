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

// The first byte of a stored change or asset says whether its JSON is compressed. Plain JSON begins with a brace.
// Compressed JSON (RFC 1951) follows a mark. Creations are usually compressed, because they contain the whole asset.
const (
	plain      = '{'
	compressed = 'z'
)

// small is the largest size in bytes of a text that is stored without compression.
const small = 512

// level is the level of compression. For an asset of 3 KB the result is about as small as with the default of the
// standard library, in half the time.
const level = 6

// packer makes the descriptions of changes that the record stores. It reuses the memory of its compressors.
type packer struct {
	public shownTo
	idle   sync.Pool
}

func newPacker(hidden []asset.Group) *packer { return &packer{public: publicView(hidden)} }

// pack compresses a text that has more bytes than the constant `small`. It returns a shorter text unchanged.
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

// inflaters are readers of compressed texts that are not in use. A new one takes 40 KB of memory.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// errUnknownPack is returned for a text in an encoding that this version does not know.
var errUnknownPack = errors.New("the record has an unknown encoding")

func inflate(kept []byte) ([]byte, error) { return inflateUpto(kept, AnySize) }

// inflateUpto returns the text from which the method `pack` has made the stored bytes (kept). If the text has more
// bytes than the given limit (most), inflateUpto returns ErrLarge. The returned text may share its memory with the
// stored bytes.
func inflateUpto(kept []byte, most int) (text []byte, err error) {
	switch {
	case len(kept) > 0 && kept[0] == plain:
		text = kept
	case len(kept) > 0 && kept[0] == compressed:
		r := inflaters.Get().(io.Reader)
		defer inflaters.Put(r)
		if err := r.(flate.Resetter).Reset(bytes.NewReader(kept[1:]), nil); err != nil {
			return nil, err
		}
		text, err = io.ReadAll(io.LimitReader(r, min(int64(most), math.MaxInt64-1)+1))
	default:
		err = errUnknownPack
	}
	if err == nil && len(text) > most {
		return nil, ErrLarge
	}
	return text, err
}
