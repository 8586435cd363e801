// Package oneprocess tests what a registry in one process has for production: its certificate, its systemd units,
// its status, its backups, and a mirror that takes over (docs/one-process.md).
package oneprocess
