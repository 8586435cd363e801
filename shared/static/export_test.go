package static

import "asset-registry/shared/httpserver"

// SetPace sets the least speed of a client.
func (f *File) SetPace(p httpserver.Pace) { f.pace = p }
