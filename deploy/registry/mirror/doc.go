// Package mirror serves a copy of a registry (docs/mirrors.md, "Serve a copy"). The registry is the origin of
// the copy. Clients read from the mirror as they read from the origin: ids, offsets, tags and the cookie are
// the same.
//
// # Parts
//
// A keeper keeps the copy up to date (package replica). A gateway and an asset service in the same process serve
// it. The asset service also copies the public log, and makes its own snapshots, so that another mirror can copy
// this one. If a request is for data that no copy has, a relay forwards it to the origin.
//
// # Rules
//
//   - Nothing is served before the copy has reached the end of the feed once, and has been
//     compared with the public log.
//   - A page of the feed says that it is complete only up to the position of the copy (K2
//     in package replica).
//   - A checkpoint of the log is served once its tree is verified and the copy has all
//     changes that the checkpoint covers.
//   - If the origin has different data or a different log, or if the copy contradicts the log,
//     the copy may be void. If the mirror demands a signed log and has served the copy before,
//     it serves the copy until a new one is verified. Otherwise it removes the copy, and
//     answers 503 until it serves a new one.
//   - If the copy is damaged or contradicts itself, the mirror always removes it.
//   - After any other failure the mirror continues to serve the copy, and the header Age grows.
package mirror
