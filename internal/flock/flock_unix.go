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

// bequeath lets processes that are started inherit an open file. Its number is above those that they get
// from os/exec.
func bequeath(f *os.File) (undo func()) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 16)
	return func() {
		if err == nil {
			unix.Close(fd)
		}
	}
}

// unlock releases the lock of an open file.
func unlock(f *os.File) { unix.Flock(int(f.Fd()), unix.LOCK_UN) }
