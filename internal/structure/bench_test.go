package structure_test

import (
	"testing"

	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

func BenchmarkOf(b *testing.B) {
	g, a := pair(1, 1024*1024)
	for i := 512 * 1024; i < len(a); i++ {
		a[i] = -a[i]
	}
	tg, _ := tensor.Of(g, 1024, 1024)
	ta, _ := tensor.Of(a, 1024, 1024)
	b.SetBytes(int64(8 * len(g)))
	for b.Loop() {
		structure.Of(tg, ta, floor, 32)
	}
}
