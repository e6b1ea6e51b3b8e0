//go:build unix

package mapfile

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const nonblock = syscall.O_NONBLOCK

func inodeOf(st os.FileInfo) inode {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return inode{uint64(s.Dev), uint64(s.Ino)}
	}
	return inode{}
}

func mmap(f *os.File, size int) ([]byte, func() error, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}

// ReadAhead asks the system to read a part of Data that is not in memory, and does not wait for it.
func ReadAhead(data []byte) {
	skip := -int(address(data)) & (os.Getpagesize() - 1) // the call needs whole pages
	if skip < len(data) {
		_ = unix.Madvise(data[skip:], unix.MADV_WILLNEED) // only advice: errors do not matter
	}
}

func forget(data []byte) {
	page := os.Getpagesize()
	skip := -int(address(data)) & (page - 1)
	if n := (len(data) - skip) / page * page; n > 0 {
		_ = unix.Madvise(data[skip:skip+n], unix.MADV_DONTNEED)
	}
}
