package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
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

const (
	opMsg      = 2013 // opcode of all messages but the first of a connection
	bodyOffset = 21   // offset of the document, after 16 bytes of header, 4 of flags and 1 for the kind of section
)

// edited returns a message whose document was changed by the function `edit`.
func edited(message []byte, edit func(bson.D) bson.D) ([]byte, error) {
	document, length, err := documentOf(message)
	if err != nil || document == nil {
		return message, err
	}
	body, err := bson.Marshal(edit(document))
	if err != nil {
		return nil, err
	}
	changed := slices.Concat(message[:bodyOffset], body, message[bodyOffset+length:])
	binary.LittleEndian.PutUint32(changed, uint32(len(changed)))
	return changed, nil
}

// documentOf returns the document of a message and its length. The document is nil if the message has a different
// form.
func documentOf(message []byte) (document bson.D, length uint32, err error) {
	if binary.LittleEndian.Uint32(message[12:]) != opMsg {
		return nil, 0, nil
	}
	length = binary.LittleEndian.Uint32(message[bodyOffset:])
	err = bson.Unmarshal(message[bodyOffset:][:length], &document)
	return document, length, err
}

// The function `singly` splits a command that creates several indexes, because FerretDB fails to create several at
// once if they exist. It returns any other command unchanged.
func singly(command []byte) (commands [][]byte, err error) {
	document, _, err := documentOf(command)
	if err != nil || len(document) == 0 || document[0].Key != "createIndexes" {
		return [][]byte{command}, err
	}
	for at, e := range document {
		indexes, _ := e.Value.(bson.A)
		if e.Key != "indexes" {
			continue
		}
		for _, index := range indexes {
			one, err := edited(command, func(d bson.D) bson.D {
				d[at].Value = bson.A{index}
				return d
			})
			if err != nil {
				return nil, err
			}
			commands = append(commands, one)
		}
	}
	return commands, nil
}

// succeeded tells whether an answer says that the command was done.
func succeeded(answer []byte) (bool, error) {
	document, _, err := documentOf(answer)
	for _, e := range document {
		if e.Key == "ok" {
			return e.Value == 1.0, err
		}
	}
	return true, err
}
