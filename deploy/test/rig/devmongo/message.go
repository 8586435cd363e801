package main

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	headerSize = 16
	maxMessage = 48_000_000 // bytes, MongoDB's limit
)

// readMessage reads one whole message of the MongoDB wire protocol. Its first four
// bytes are the length of the message with its header, little-endian.
func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n < headerSize || n > maxMessage {
		return nil, fmt.Errorf("message of %d bytes, want %d to %d", n, headerSize, maxMessage)
	}
	message := make([]byte, n)
	copy(message, length[:])
	if _, err := io.ReadFull(r, message[len(length):]); err != nil {
		return nil, err
	}
	return message, nil
}
