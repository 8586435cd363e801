// Package oneprocess tests what a registry of one process has for production: its certificate,
// its units of systemd, its status, and its mirror that takes over (docs/one-process.md).
package oneprocess
