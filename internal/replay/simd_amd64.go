package replay

import "golang.org/x/sys/cpu"

// vector says whether products use the kernels in assembly.
var vector = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// tileOf returns the fastest form of tile.
func tileOf[T floating]() tile[T] {
	for _, f := range []any{tile32AVX2, tile64AVX2} {
		if f, ok := f.(func(dst *T, stride int, a, b *T, k int)); ok && vector {
			return f
		}
	}
	return tileGo[T]
}
