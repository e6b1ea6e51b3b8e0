package golden_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/afero"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/tensor"
)

// TestHashOfFile verifies a manifest as older versions wrote it, whose sha256 is that of the file.
func TestHashOfFile(t *testing.T) {
	fsys := afero.NewMemMapFs()
	importRun(t, fsys, "golden", golden.ImportOptions{Runs: runs("a",
		ports("l", "output", f32(t, 1, 2), "m", "output", f32(t, 3), "n", "output", f32(t, 1, 2)))})
	const file = "golden/float32/a.0.safetensors"
	data, err := afero.ReadFile(fsys, file)
	require.NoError(t, err)
	whole := sha256.Sum256(data)
	manifest, err := afero.ReadFile(fsys, "golden/manifest.json")
	require.NoError(t, err)
	parts := regexp.MustCompile(`"sha256":"[0-9a-f]{64}","sha256_of":"header, tensors"`)
	old := parts.ReplaceAllString(unsealed(string(manifest)), `"sha256":"`+hex.EncodeToString(whole[:])+`"`)
	require.NotEqual(t, string(manifest), old)
	require.NoError(t, afero.WriteFile(fsys, "golden/manifest.json", []byte(old), 0o644))
	assert.Empty(t, verify(t, open(t, fsys, "golden")))

	data[len(data)-1] ^= 1
	require.NoError(t, afero.WriteFile(fsys, file, data, 0o644))
	assert.NotEmpty(t, verify(t, open(t, fsys, "golden")))
}

// big is a run of 64 MiB.
func big(b *testing.B) map[string]*golden.Run {
	b.Helper()
	run := &golden.Run{Engine: "torch"}
	for i := range 16 {
		data := make([]byte, 4<<20)
		for j := range data {
			data[j] = byte((j + i) % 59)
		}
		x, err := tensor.New(tensor.F32, []int{1 << 10, 1 << 10}, data)
		require.NoError(b, err)
		run.Ports = append(run.Ports, golden.Port{Step: "0", Layer: string(rune('a' + i)), Port: "output", Tensor: x})
	}
	return map[string]*golden.Run{"a": run}
}

func BenchmarkImport(b *testing.B) {
	opt := golden.ImportOptions{Runs: big(b)}
	b.SetBytes(64 << 20)
	for b.Loop() {
		_, err := golden.Import(context.Background(), filepath.Join(b.TempDir(), "golden"), opt)
		require.NoError(b, err)
	}
}

func BenchmarkVerify(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "golden")
	_, err := golden.Import(context.Background(), dir, golden.ImportOptions{Runs: big(b)})
	require.NoError(b, err)
	s, err := golden.Open(dir)
	require.NoError(b, err)
	defer s.Close()
	b.SetBytes(64 << 20)
	for b.Loop() {
		problems, err := s.Verify(context.Background())
		require.NoError(b, err)
		require.Empty(b, problems)
	}
}
