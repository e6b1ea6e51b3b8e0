package mapfile

import (
	"errors"
	"os"
	"sync"
	"unsafe"
	"weak"
)

// part is a range of a file that is read when it is asked for, and again if it is not in memory any
// more.
type part struct {
	file   *File
	offset int64
	n      int

	mu   sync.Mutex
	last weak.Pointer[byte] // of the bytes that were read last, as long as anyone uses them
}

// Later returns a function that reads a part of Data from the file whenever it is called, for use
// after Release; nil if data is no part of Data. The function panics with a [*Fault] if the file
// cannot be read or has changed; [Guard] makes an error of that.
func (m *File) Later(data []byte) func() []byte {
	if len(data) == 0 || len(m.Data) == 0 {
		return nil
	}
	first, begin := uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(&m.Data[0]))
	if first < begin || first-begin > uintptr(len(m.Data)-len(data)) {
		return nil
	}
	p := &part{file: m, offset: int64(first - begin), n: len(data)}
	return p.bytes
}

func (p *part) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.last.Value(); b != nil {
		return unsafe.Slice(b, p.n)
	}
	data := make([]byte, p.n)
	if err := p.file.read(data, p.offset); err != nil {
		panic(err)
	}
	p.last = weak.Make(&data[0])
	return data
}

// read reads from the file at an offset. The error is a *Fault.
func (m *File) read(data []byte, offset int64) error {
	if m.closed.Load() {
		return m.fault(os.ErrClosed)
	}
	f, st, err := open(m.path)
	if err != nil {
		return m.fault(err)
	}
	defer f.Close()
	if err := m.sameAs(st); err != nil {
		return err
	}
	if n, err := f.ReadAt(data, offset); n < len(data) {
		return m.fault(errors.Join(err, m.Changed()))
	}
	return nil
}
