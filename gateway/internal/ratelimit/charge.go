package ratelimit

// Charge counts what an answer cost beyond its request: the request counts `times` times more. Charge refuses nobody.
// A client that has used more than a limit waits before its next request. Policies that count bytes are not charged,
// because they limit what is stored.
func (l *Limiter) Charge(r Request, times int64) {
	p := l.planOf(r)
	s := l.pool.Get().(*scratch)
	defer l.pool.Put(s)
	s.fill(p, r.Client, 0)
	buckets := s.buckets[:0]
	for i, rule := range p.rules {
		if b := s.buckets[i]; !rule.inBytes() {
			b.Cost = min(b.Cost*times, maxLimit)
			buckets = append(buckets, b)
		}
	}
	if s.buckets = buckets; len(buckets) > 0 {
		l.store.Charge(buckets)
	}
}

// Charge implements Store.
func (m *Memory) Charge(buckets []Bucket) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer m.table.unlock(entries)
	commit(entries, buckets, now)
}

// Charge implements Store. The loans pay first. Redis learns the rest with a call that nobody waits for, or once it is
// back.
func (s *Borrower) Charge(buckets []Bucket) {
	if s.down.Load() && s.config.Fallback != FallbackLocal {
		return
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer s.table.unlock(entries)
	commit(entries, buckets, now)
	for i := range buckets {
		e, l, cost := entries[i], &entries[i].loan, buckets[i].Cost
		if now < l.until {
			lent := min(l.left, cost)
			l.left, l.last, cost = l.left-lent, now, cost-lent
		}
		if cost == 0 {
			continue
		}
		e.useUnreported(now, cost)
		if l.renewal == nil && !s.down.Load() {
			s.enqueue(e.renew(now, redisKey(&buckets[i]), 0, s.config.Gateways))
		}
	}
}
