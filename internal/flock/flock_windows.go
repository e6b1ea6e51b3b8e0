package flock

import (
	"os"

	"golang.org/x/sys/windows"
)

// at is the offset of the locked byte: far after the text, which others must be able to read.
var at = windows.Overlapped{OffsetHigh: 1 << 30}

// TryLock locks an open file if no other process holds its lock; its text is the caller's. The system
// releases it when this process ends.
func TryLock(f *os.File) (bool, error) {
	at := at
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &at)
	switch err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_IO_PENDING:
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}

// bequeath does nothing: a lock of Windows is that of one process.
func bequeath(*os.File) (undo func()) { return func() {} }

// unlock releases the lock of an open file.
func unlock(f *os.File) {
	at := at
	windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
