//go:build unix

package flock

import (
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks an open file if no other process holds its lock; its text is the caller's. The lock
// belongs to the open file, hence to all processes that inherit it.
func TryLock(f *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// Unlock releases the lock of an open file.
func Unlock(f *os.File) { unix.Flock(int(f.Fd()), unix.LOCK_UN) }
