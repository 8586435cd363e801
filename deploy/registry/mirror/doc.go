// Package mirror serves a copy of a registry (docs/mirrors.md, "Serve a copy"). Clients
// read from it as from the registry that it is a copy of, its origin: with the same ids,
// offsets, tags and cookie.
//
// # Parts
//
// A keeper keeps the copy up to date (package replica). A gateway and an asset service in
// the same process serve it. The asset service copies the public log too, and makes
// snapshots of its own, so that another mirror can copy this one. A relay asks the origin
// for what no copy has.
//
// # Rules
//
//   - Nothing is served before the copy has reached the end of the feed once, and has been
//     compared with the public log.
//   - A page of the feed says that it is complete only up to where the copy is (K2).
//   - A checkpoint of the log is served once its tree is verified and the copy has all
//     changes that it covers.
//   - If the origin has other data or another log, or if the copy contradicts itself or the
//     log, the mirror removes its copy and begins anew. Meanwhile it answers 503.
//   - Any other failure leaves what is served as it is, and Age grows.
package mirror
