//go:build unix

package compare_test

import (
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// fenced returns n bytes between two pages that cannot be read, directly before the second or after
// the first.
func fenced(t *testing.T, n int, atEnd bool) []byte {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(m)) })
	require.NoError(t, syscall.Mprotect(m[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(m[page+size:], syscall.PROT_NONE))
	if atEnd {
		return m[page+size-n : page+size]
	}
	return m[page : page+n]
}

// No kernel reads a byte outside its tensors.
func TestGuardPages(t *testing.T) {
	noise := make([]byte, 32*compare.PieceLen)
	rand.NewChaCha8([32]byte{9, 10}).Read(noise)
	forEachISA(t, func(t *testing.T) {
		for _, types := range [][2]tensor.DType{
			{tensor.F32, tensor.F32}, {tensor.F64, tensor.F64}, {tensor.BF16, tensor.BF16}, {tensor.F16, tensor.F16},
			{tensor.BF16, tensor.F32},
			{tensor.F32, tensor.BF16}, {tensor.F16, tensor.F32}, {tensor.F32, tensor.F16}, {tensor.I8, tensor.F32},
			{tensor.F8E5M2, tensor.BF16},
		} {
			for _, cols := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129,
				compare.PieceLen - 1, compare.PieceLen, compare.PieceLen + 1} {
				for _, rows := range []int{1, compare.PieceLen/cols + 2} {
					for _, atEnd := range []bool{false, true} {
						var pair [2]*tensor.Tensor
						for i, d := range types {
							b := fenced(t, rows*cols*d.Size(), atEnd)
							copy(b, noise[i*(len(noise)-len(b)):])
							pair[i] = fromBytes(t, d, []int{rows, cols}, b)
						}
						tensors(t, pair[0], pair[1], compare.Tolerance{Rtol: 1})
					}
				}
			}
		}
	})
}

// A fault in assembly is an error, whether it occurs in this goroutine or in a helper.
func TestFaultOnAnyCore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n = 6 * compare.ChunkLen
	m, err := syscall.Mmap(-1, 0, 4*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(m)) }()
	require.NoError(t, syscall.Mprotect(m[2*n:], syscall.PROT_NONE))
	g := fromBytes(t, tensor.F32, []int{n / 64, 64}, m)
	a := fromBytes(t, tensor.F32, []int{n / 64, 64}, make([]byte, 4*n))
	forEachISA(t, func(t *testing.T) {
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			for range 5 {
				_, err := compare.Tensors(g, a, compare.Tolerance{})
				var fault *compare.FaultError
				require.ErrorAs(t, err, &fault)
			}
		}
	})
}
