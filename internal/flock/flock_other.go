//go:build !windows && (!unix || aix)

package flock

import (
	"errors"
	"os"
)

// Try fails: this system has no locks of files.
func Try(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Free does nothing: there are no locks.
func Free(*os.File) {}
