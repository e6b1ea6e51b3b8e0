//go:build windows

// Package b.
package b

import _ "syscall"
