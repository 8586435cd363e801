package main

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	headerSize = 16
	maxMessage = 48_000_000 // bytes, as MongoDB has it
)

// readMessage reads a message of the MongoDB wire protocol, whole: its first
// four bytes are its length, header included, little-endian.
func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n < headerSize || n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	message := make([]byte, n)
	copy(message, length[:])
	if _, err := io.ReadFull(r, message[len(length):]); err != nil {
		return nil, err
	}
	return message, nil
}
