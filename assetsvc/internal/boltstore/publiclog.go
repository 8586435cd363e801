package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/translog"
)

// headKey is the key of the public log's head in stateBucket. The head has these parts (numbers are big-endian):
// the version and the position (8 bytes each), the length of the tree (4), the tree, and the checkpoint.
var headKey = []byte("log")

const headHeader = 8 + 8 + 4

// logFile implements publiclog.Store on a file.
type logFile struct{ file *boltfile.File }

// logFormat is the format of a file that has only a public log.
const logFormat = "asset-registry log 1"

// PublicLog is a public log in a file that contains nothing else. It implements publiclog.Store, and is safe for
// concurrent use.
type PublicLog struct{ logFile }

// OpenLog opens the public log in the file at path, and creates the file if it does not exist. It returns the
// same errors as boltfile.Open.
func OpenLog(path string, log *slog.Logger) (*PublicLog, error) {
	file, err := boltfile.Open(path, boltfile.Options{
		Format: logFormat, Buckets: [][]byte{stateBucket, tileBucket}, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &PublicLog{logFile{file}}, nil
}

// Close closes the file.
func (l *PublicLog) Close() error { return l.file.Close() }

func (l logFile) LogHead(ctx context.Context) (publiclog.Head, error) {
	return boltfile.Read(ctx, l.file, func(tx *bbolt.Tx) (publiclog.Head, error) {
		return decodeHead(tx.Bucket(stateBucket).Get(headKey))
	})
}

func (l logFile) ExtendLog(ctx context.Context, head publiclog.Head, parts []translog.Part) (stored bool, err error) {
	value, err := encodeHead(head)
	if err != nil {
		return false, err
	}
	err = l.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		state, tiles := tx.Bucket(stateBucket), tx.Bucket(tileBucket)
		now, err := decodeHead(state.Get(headKey))
		if err != nil {
			return err
		}
		if stored = now.Version == head.Version; !stored {
			return nil
		}
		for _, part := range parts {
			if err := tiles.Put(tileKey(part.Tile), part.Data); err != nil {
				return err
			}
		}
		return state.Put(headKey, value)
	})
	return stored && err == nil, err
}

func (l logFile) LogPart(ctx context.Context, tile translog.Tile) (data []byte, err error) {
	err = l.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		value := tx.Bucket(tileBucket).Get(tileKey(tile))
		if value == nil {
			return publiclog.ErrNoPart
		}
		data = bytes.Clone(value)
		return nil
	})
	return data, err
}

// tileKey returns the key of a full part: the level (1 byte) and the index (8 bytes, big-endian).
func tileKey(tile translog.Tile) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(tile.Level)}, uint64(tile.Index))
}

func encodeHead(head publiclog.Head) ([]byte, error) {
	tree, err := head.Tree.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode the head of the log: %w", err)
	}
	value := append(positionKey(head.Version+1), positionKey(head.Position)...)
	value = binary.BigEndian.AppendUint32(value, uint32(len(tree)))
	return append(append(value, tree...), head.Checkpoint...), nil
}

// decodeHead returns a copy of a stored head. For nil it returns the zero Head.
func decodeHead(value []byte) (head publiclog.Head, err error) {
	if value == nil {
		return head, nil
	}
	if len(value) < headHeader || len(value)-headHeader < int(binary.BigEndian.Uint32(value[16:])) {
		return head, errCorrupt
	}
	end := headHeader + int(binary.BigEndian.Uint32(value[16:]))
	head.Version, head.Position = positionOf(value), positionOf(value[8:])
	if err := head.Tree.UnmarshalBinary(bytes.Clone(value[headHeader:end])); err != nil {
		return head, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if end < len(value) {
		head.Checkpoint = bytes.Clone(value[end:])
	}
	return head, nil
}
