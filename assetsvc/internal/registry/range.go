package registry

// RangeQuery asks for listed assets in the order of their ids.
type RangeQuery struct {
	From  string // lowest id, 32 lowercase hex characters; "" starts at the first asset
	Limit int    // maximum number of assets to look at, at least 1; assets that are not listed count, too
	Bytes int    // maximum number of bytes of all bodies together; the first body may have more
}

// RangePage is a part of the listed assets, in the order of their ids.
type RangePage struct {
	Entries []Entry // with bodies; may be empty although more pages follow
	Next    string  // lowest id after the page; "" at the end
}

// NextID returns the next higher id after an id, or "" after the highest.
func NextID(id string) string {
	next := []byte(id)
	for i := len(next) - 1; i >= 0; i-- {
		switch next[i] {
		case 'f':
			next[i] = '0'
		case '9':
			next[i] = 'a'
			return string(next)
		default:
			next[i]++
			return string(next)
		}
	}
	return ""
}
