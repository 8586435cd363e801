package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/boltfile"
)

// A stored asset has these parts (numbers are big-endian):
//
//   - the header: position (8 bytes), revision (8), flags (1) and length of the
//     sealed token record (2);
//   - the sealed token record;
//   - with originFlag, the length of the origin (2 bytes) and the origin;
//   - the body;
//   - a checksum (4 bytes) of all the parts above and the id, because bbolt does not check values itself.
const (
	headerSize = 8 + 8 + 1 + 2
	lengthSize = 2
	sumSize    = crc32.Size
	maxValue   = 64 << 20 // bytes; many times the size of the largest asset
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(id string, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(value, castagnoli), castagnoli, []byte(id))
}

// Bits of the flags. The three bits of stateMask are an index into states.
const (
	listedFlag = 1 << iota
	testFlag
	originFlag

	stateShift = 3
	stateMask  = 7 << stateShift

	removedFlag = 1 << 6
)

// states are the states that a header can hold. The first one is for records without a state. The index of a
// state must never change, because files contain it.
var states = [8]asset.Status{
	"", asset.Draft, asset.Pending, asset.Verification, asset.Active, asset.Complete, asset.Deleted,
}

var errCorrupt = fmt.Errorf("the stored asset differs from the one written: %w", boltfile.ErrDamaged)

type header struct {
	position, revision int64
	listed, test       bool
	origin, removed    bool
	state              asset.Status
	sealed             int // bytes of the sealed token record
}

func encode(r registry.Record) []byte {
	flags := byte(0)
	if r.Listed {
		flags |= listedFlag
	}
	if r.Test {
		flags |= testFlag
	}
	if r.Origin != "" {
		flags |= originFlag
	}
	if r.Removed {
		flags |= removedFlag
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
		removed:  value[16]&removedFlag != 0,
		state:    states[value[16]&stateMask>>stateShift],
		sealed:   int(binary.BigEndian.Uint16(value[17:])),
	}
	if len(value) < headerSize+h.sealed {
		return header{}, errCorrupt
	}
	return h, nil
}

// decode returns a copy of a stored asset, because `value` is valid only within its transaction. It returns the same
// errors as the function checked.
func decode(id string, value []byte, most int) (registry.Record, error) {
	r, body, err := checked(id, value, most)
	r.Body = bytes.Clone(body)
	return r, err
}

// checked returns a stored asset and its body, which is a part of `value`, after it has compared the checksum. If the
// body has more bytes than the limit `most`, checked returns registry.ErrLarge and reads only the beginning of `value`.
// This saves time: bbolt maps the file into memory, and a read of a part that is not in memory blocks the thread until
// the disk has answered.
func checked(id string, value []byte, most int) (registry.Record, []byte, error) {
	r, body, err := split(id, value)
	end := len(value) - sumSize
	switch {
	case err != nil:
		return registry.Record{}, nil, err
	case len(body) > most:
		return registry.Record{}, nil, registry.ErrLarge
	case binary.BigEndian.Uint32(value[end:]) != checksum(id, value[:end]):
		return registry.Record{}, nil, errCorrupt
	}
	return r, body, nil
}

// split returns a stored asset and its body, which is a part of `value`. It reads only the beginning of `value`.
func split(id string, value []byte) (registry.Record, []byte, error) {
	h, err := decodeHeader(value)
	if err != nil {
		return registry.Record{}, nil, err
	}
	originStart, originEnd, err := originRange(value, h)
	if err != nil {
		return registry.Record{}, nil, err
	}
	bodyEnd := len(value) - sumSize
	if bodyEnd < originEnd || bodyEnd > maxValue {
		return registry.Record{}, nil, errCorrupt
	}
	return registry.Record{
		ID:       id,
		Position: h.position,
		Revision: h.revision,
		Listed:   h.listed,
		Test:     h.test,
		Removed:  h.removed,
		State:    h.state,
		Sealed:   string(value[headerSize : headerSize+h.sealed]),
		Origin:   string(value[originStart:originEnd]),
	}, value[originEnd:bodyEnd], nil
}

// originRange returns where the origin begins and ends in value. The body begins where the origin ends.
func originRange(value []byte, h header) (start, end int, err error) {
	start = headerSize + h.sealed
	if !h.origin {
		return start, start, nil
	}
	if len(value) < start+lengthSize {
		return 0, 0, errCorrupt
	}
	length := int(binary.BigEndian.Uint16(value[start:]))
	start += lengthSize
	return start, start + length, nil
}

// positionKey encodes a number as a key. Keys have the same order as their numbers.
func positionKey(position int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(position))
}

// positionOf decodes the first 8 bytes of key.
func positionOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key)) }
