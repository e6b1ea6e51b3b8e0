package tensor

import (
	"errors"
	"fmt"
	"strings"
)

// Classes of a [FormatError], for [errors.Is].
var (
	// ErrTruncated: the file is shorter than its header says.
	ErrTruncated = errors.New("truncated file")
	// ErrCorrupt: the file contradicts itself or its format.
	ErrCorrupt = errors.New("corrupt file")
	// ErrUnsupported: the file is well-formed, but has something that cannot be compared (complex
	// numbers, sparse tensors, code).
	ErrUnsupported = errors.New("unsupported content")
	// ErrLFSPointer: the file is a git-lfs pointer, whose content was never fetched.
	ErrLFSPointer = errors.New("git-lfs pointer")
)

// FormatError says what is wrong with a tensor file, and where.
type FormatError struct {
	Format string // "safetensors", "torchpt", …
	File   string // path or name, as given
	Offset int64  // byte offset in the file; −1 if there is no such place
	Member string // record of an archive or tensor name, if there is one
	Msg    string // what was found and what was wanted
	Err    error  // ErrTruncated, ErrCorrupt, ErrUnsupported, ErrLFSPointer or an error of the system
}

func (e *FormatError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: open %q: ", e.Format, e.File)
	if e.Member != "" {
		fmt.Fprintf(&b, "%q: ", e.Member)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, "byte %d: ", e.Offset)
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }
