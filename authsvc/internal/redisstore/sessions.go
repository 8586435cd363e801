package redisstore

import (
	"context"
	"fmt"
	"time"
)

// sessionKey returns the Redis name for a session of the console that was ended.
func sessionKey(id string) string { return "registry:session:{" + id + "}" }

// EndSession durably ends a session of the console. Redis forgets the session after the given time.
func (s *Store) EndSession(ctx context.Context, id string, forget time.Duration) error {
	if err := s.client.Set(ctx, sessionKey(id), "ended", forget).Err(); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// SessionEnded reports whether a session of the console was ended.
func (s *Store) SessionEnded(ctx context.Context, id string) (bool, error) {
	n, err := s.client.Exists(ctx, sessionKey(id)).Result()
	if err != nil {
		return false, fmt.Errorf("look for a session: %w", err)
	}
	return n > 0, nil
}
