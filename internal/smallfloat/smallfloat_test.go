package smallfloat_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/smallfloat"
	_ "github.com/goparity/goparity/internal/updateflag"
)

// TestPutF16 writes each binary16 back.
func TestPutF16(t *testing.T) {
	for i, v := range smallfloat.F16() {
		if math.IsNaN(float64(v)) {
			assert.Equal(t, uint16(0x7e00), smallfloat.PutF16(v)&0x7fff)
			continue
		}
		assert.Equal(t, uint16(i), smallfloat.PutF16(v))
	}
}

func TestValues(t *testing.T) {
	f8 := smallfloat.F8()
	for _, r := range []struct {
		got    float32
		want   float64
		reason string
	}{
		{smallfloat.F16()[0x3555], 0.333251953125, "about a third"},
		{smallfloat.F16()[1], 0x1p-24, "the smallest"},
		{f8.E4M3FN[0x7e], 448, "the largest"},
		{f8.E4M3FNUZ[0x7f], 240, "the largest"},
		{f8.E5M2[0x7b], 57344, "the largest"},
		{f8.E5M2FNUZ[0x7f], 57344, "the largest"},
		{f8.E8M0FNU[0], 0x1p-127, "subnormal in float32"},
		{smallfloat.E2M1[0xf], -6, "the largest, negative"},
	} {
		assert.Equal(t, r.want, float64(r.got), r.reason)
	}
	assert.True(t, math.Signbit(float64(smallfloat.E2M1[8])), "−0")
}
