// Package log compares our verifier of a log with verifiers that others wrote, or that share no code with ours:
// verify.py, which is written from docs/log.md alone; the client and fsck of Tessera; and transparency-dev's merkle
// and formats. All of them must accept a right log, and all must find each tampering.
//
// The package is a separate module, because only these tests need Tessera.
package log
