//go:build !unix && !windows

package mapfile

import (
	"errors"
	"os"
)

const nonblock = 0

func inodeOf(os.FileInfo) inode { return inode{} }

func mmap(*os.File, int) ([]byte, func() error, error) { return nil, nil, errors.ErrUnsupported }

func readAhead([]byte) {}

func forget([]byte) {}
