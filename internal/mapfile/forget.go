package mapfile

import (
	"sync"
	"unsafe"
)

// regions are the mapped files of the process: what lies in no one of them is ordinary memory.
var regions sync.Map // the address of the first byte → how many follow

func enter(data []byte) (leave func()) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	regions.Store(at, len(data))
	return func() { regions.Delete(at) }
}

// Forget lets the system take the memory of a part of a mapped file, which is read again when it is
// used; other bytes stay as they are. On Windows it does nothing.
func Forget(data []byte) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	regions.Range(func(begin, n any) bool {
		b := begin.(uintptr)
		inside := at >= b && at-b <= uintptr(n.(int)) && uintptr(len(data)) <= uintptr(n.(int))-(at-b)
		if inside {
			forget(data)
		}
		return !inside
	})
}
