package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

// A stored asset is a header (position, revision, flags, length of the sealed
// record; 8, 8, 1 and 2 bytes, big-endian), the sealed record, if a flag says so
// the origin (its length in 2 bytes before it), the body, and if a flag says so
// the checksum of all that and the id: bbolt has none.
const (
	headerSize = 8 + 8 + 1 + 2
	lengthSize = 2
	sumSize    = crc32.Size
	maxValue   = 64 << 20 // many times what an asset may have
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(id string, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(value, castagnoli), castagnoli, []byte(id))
}

// The flags; the three bits between them are the state's place in states.
const (
	listedFlag = 1 << iota
	testFlag
	originFlag

	stateShift = 3
	stateMask  = 7 << stateShift

	sumFlag = 1 << 6 // earlier versions wrote no checksum
)

// states are those that can be stored. The first stands for assets that were
// stored before there were any; places are never taken away.
var states = [8]asset.Status{"", asset.Draft, asset.Pending, asset.Verification, asset.Active, asset.Complete, asset.Deleted}

var errCorrupt = fmt.Errorf("the stored asset is not what was written: %w", boltfile.ErrDamaged)

type header struct {
	position, revision int64
	listed, test       bool
	origin, sum        bool
	state              asset.Status
	sealed             int // bytes
}

func encode(r registry.Record) []byte {
	flags := byte(sumFlag)
	if r.Listed {
		flags |= listedFlag
	}
	if r.Test {
		flags |= testFlag
	}
	if r.Origin != "" {
		flags |= originFlag
	}
	flags |= byte(max(0, slices.Index(states[:], r.State))) << stateShift
	value := make([]byte, 0, headerSize+len(r.Sealed)+lengthSize+len(r.Origin)+len(r.Body)+sumSize)
	value = binary.BigEndian.AppendUint64(value, uint64(r.Position))
	value = binary.BigEndian.AppendUint64(value, uint64(r.Revision))
	value = append(value, flags)
	value = binary.BigEndian.AppendUint16(value, uint16(len(r.Sealed)))
	value = append(value, r.Sealed...)
	if r.Origin != "" {
		value = binary.BigEndian.AppendUint16(value, uint16(len(r.Origin)))
		value = append(value, r.Origin...)
	}
	value = append(value, r.Body...)
	return binary.BigEndian.AppendUint32(value, checksum(r.ID, value))
}

func decodeHeader(value []byte) (header, error) {
	if len(value) < headerSize {
		return header{}, errCorrupt
	}
	h := header{
		position: positionOf(value),
		revision: positionOf(value[8:]),
		listed:   value[16]&listedFlag != 0,
		test:     value[16]&testFlag != 0,
		origin:   value[16]&originFlag != 0,
		state:    states[value[16]&stateMask>>stateShift],
		sum:      value[16]&sumFlag != 0,
		sealed:   int(binary.BigEndian.Uint16(value[17:])),
	}
	if len(value) < headerSize+h.sealed {
		return header{}, errCorrupt
	}
	return h, nil
}

// decode copies what it returns: value is bbolt's, and gone with its transaction.
// It copies no body of more than most bytes: registry.ErrLarge.
func decode(id string, value []byte, most int) (registry.Record, error) {
	h, err := decodeHeader(value)
	if err != nil {
		return registry.Record{}, err
	}
	if value, err = withoutSum(id, value, h); err != nil {
		return registry.Record{}, err
	}
	sealed, body := value[headerSize:headerSize+h.sealed], value[headerSize+h.sealed:]
	var origin []byte
	if h.origin {
		if len(body) < lengthSize || len(body)-lengthSize < int(binary.BigEndian.Uint16(body)) {
			return registry.Record{}, errCorrupt
		}
		end := lengthSize + int(binary.BigEndian.Uint16(body))
		origin, body = body[lengthSize:end], body[end:]
	}
	if !h.sum && !json.Valid(body) {
		return registry.Record{}, errCorrupt
	}
	if len(body) > most {
		return registry.Record{}, registry.ErrLarge
	}
	return registry.Record{
		ID:       id,
		Position: h.position,
		Revision: h.revision,
		Listed:   h.listed,
		Test:     h.test,
		State:    h.state,
		Sealed:   string(sealed),
		Origin:   string(origin),
		Body:     bytes.Clone(body),
	}, nil
}

// withoutSum checks the checksum, if there is one, and returns the rest.
func withoutSum(id string, value []byte, h header) ([]byte, error) {
	if !h.sum {
		return value, nil
	}
	end := len(value) - sumSize
	if end < headerSize+h.sealed || end > maxValue || binary.BigEndian.Uint32(value[end:]) != checksum(id, value[:end]) {
		return nil, errCorrupt
	}
	return value[:end], nil
}

// keyOf returns the 16 bytes that an id stands for; false when it is none.
func keyOf(id string) ([]byte, bool) {
	key, err := hex.DecodeString(id)
	return key, err == nil && len(key) == 16 && hex.EncodeToString(key) == id
}

// positionKey is a number as a key: in the order of numbers.
func positionKey(position int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(position))
}

func positionOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key)) }
