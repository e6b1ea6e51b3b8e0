package mapfile

import (
	"os"
	"syscall"
	"unsafe"
)

const nonblock = 0

func inodeOf(os.FileInfo) inode { return inode{} }

func mmap(f *os.File, size int) ([]byte, func() error, error) {
	h, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_READONLY, uint32(uint64(size)>>32),
		uint32(size), nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}
	// The view keeps the mapping object alive, so its handle is no longer needed.
	defer syscall.CloseHandle(h)
	addr, err := syscall.MapViewOfFile(h, syscall.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is outside Go's heap; the double conversion tells vet that this is meant.
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size)
	return data, func() error { return os.NewSyscallError("UnmapViewOfFile", syscall.UnmapViewOfFile(addr)) }, nil
}

// ReadAhead does nothing: see that of other systems.
func ReadAhead([]byte) {}

func forget([]byte) {}
