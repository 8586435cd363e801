// Package log holds a log of the registry's form against verifiers that others
// wrote: verify.py, which is written from docs/log.md alone; the client and fsck of
// Tessera; and transparency-dev's merkle and formats. All must agree that a log is
// right, and all must find each tampering. A log of Tessera asks our witnesses for
// cosignatures, and our verifier reads it.
//
// It is a module of its own for what only it needs: Tessera.
package log
